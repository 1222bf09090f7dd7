//! Which change is planned, and what it is to do: from the command line, a file, or a person.

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::text::Prose;
use agentd_engine::change::glance;
use agentd_engine::store::{Project, StoreError};

use super::Args;
use crate::cli::{Context, list, planning};
use crate::error::CommandError;
use crate::ui::ask::{self, Named};

/// What is to be planned.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// None for the only open change.
    pub(super) id: Option<String>,
    /// What a new change is to do.
    pub(super) description: Option<String>,
}

impl Target {
    /// From the command line alone; nobody is asked.
    pub(super) fn of(args: &Args) -> Result<Self, CommandError> {
        let (mut id, mut description) = (args.id.clone(), args.description.clone());
        if let Some(file) = &args.file {
            description = Some(planning::read_text(file, Kind::DescriptionUnreadable)?);
        }
        // A sentence where the ID would be: the ID is made from it.
        if description.is_none() && id.as_deref().is_some_and(is_sentence) {
            description = id.take();
        }
        let description = description.filter(|text| !Prose::new(text).is_empty());
        Ok(Self { id, description })
    }

    /// The same, with what only a person can say.
    pub(super) fn ask(self, context: &Context, args: &Args) -> Result<Self, CommandError> {
        let mut target = self;
        if target.id.is_none() && target.description.is_none() {
            let project = planning::project(context)?;
            if context.meant(&project)?.is_some() || !context.ui.can_prompt() {
                return Ok(target);
            }
            let mut open = glance::open(&project)?;
            list::sort(&mut open);
            if let Some(id) = ask::which_change(&open)? {
                return Ok(Self { id: Some(id), ..target });
            }
            loop {
                let description = ask::description(project.root())?;
                if let Some(id) = new_id(context, &project, &description, true)? {
                    return Ok(Self { id: Some(id.to_string()), description: Some(description) });
                }
            }
        }
        match (&target.id, &target.description) {
            (None, Some(description)) => {
                let id = new_id(context, &planning::project(context)?, description, false)?;
                target.id = id.map(|id| id.to_string());
            }
            (Some(id), None) if context.ui.can_prompt() && !args.auto => {
                let project = planning::project(context)?;
                if is_new(&context.home_of(project.clone(), Some(id))?, id)? {
                    target.description = Some(ask::description(project.root())?);
                }
            }
            _ => {}
        }
        Ok(target)
    }
}

/// Whether a word of the command line is a description rather than an ID.
fn is_sentence(text: &str) -> bool {
    text.trim().contains(char::is_whitespace) || !text.is_ascii()
}

/// Whether no change has this ID.
fn is_new(project: &Project, id: &str) -> Result<bool, StoreError> {
    Ok(ChangeId::new(id).is_ok() && project.find_change(id)?.is_none())
}

/// An ID for a new change, made from what it is to do; a person may change it. None if they want to
/// say again what it is to do.
fn new_id(
    context: &Context,
    project: &Project,
    description: &str,
    can_go_back: bool,
) -> Result<Option<ChangeId>, CommandError> {
    let made = ChangeId::from_sentence(description);
    let free = |id: &ChangeId| -> Result<bool, CommandError> {
        Ok(project.home_of(id).find_change(id.as_str())?.is_none())
    };
    let unused = |made: ChangeId| -> Result<ChangeId, CommandError> {
        let (mut id, mut number) = (made.clone(), 1);
        while !free(&id)? {
            number += 1;
            id = made.with_suffix(number);
        }
        Ok(id)
    };
    if !context.ui.can_prompt() {
        let made = made.map_or_else(|| ChangeId::new("change"), Ok);
        let id = unused(made.map_err(|error| CommandError::usage(error.to_string()))?)?;
        context.ui.note(&format!("The change is called `{id}`."));
        return Ok(Some(id));
    }
    // In some languages there is nothing to make an ID from.
    let mut text = made.map(unused).transpose()?.map(|id| id.to_string()).unwrap_or_default();
    let mut problem = None;
    loop {
        text = match ask::new_id(&text, problem.as_deref(), can_go_back, project.root())? {
            Named::As(text) => text,
            Named::Back => return Ok(None),
        };
        // `Greet By Name` is `greet-by-name`.
        let words = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-");
        problem = match ChangeId::new(&words) {
            Ok(id) if free(&id)? => {
                if words != text {
                    context.ui.note(&format!("The change is called `{id}`."));
                }
                return Ok(Some(id));
            }
            Ok(id) => Some(format!("There is a change `{id}` already.")),
            Err(error) => Some(error.to_string()),
        };
    }
}
