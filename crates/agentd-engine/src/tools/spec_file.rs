//! How both tools that write a spec put it on disk.

use agentd_core::documents::Source;
use agentd_core::ids::SpecId;
use agentd_core::layout::ChangeFile;

use super::outcome::{ActionError, Written};
use super::writing::{Gate, Open};
use crate::change::documents;

/// Writes the spec, and keeps the main spec as it is now for the later merge.
pub(super) fn put(
    open: &mut Open<'_>,
    id: &SpecId,
    file: &ChangeFile,
    text: &str,
) -> Result<Written, ActionError> {
    let warnings = open.approve(file, text, Gate::Clean)?;
    let base = ChangeFile::Base(id.clone());
    let kept = open.change.has(&base)?;
    let main = documents::load_main_spec(open.project, id);
    // The base comes first: if agentd is killed between the two writes, the agent writes the
    // spec again. A spec without its base would go unnoticed.
    match main.source() {
        _ if kept => {}
        Source::Text(main) => open.put_unchecked(&base, main)?,
        // So that a spec which others add meanwhile is not taken for one that was edited.
        Source::Missing => open.put_unchecked(&base, "")?,
        Source::Unreadable(_) => {}
    }
    let written = open.write(file, text, warnings);
    if written.is_err() && !kept && open.change.has(&base)? {
        // The disk refused it, such as a link in its place.
        open.take_back(&base)?;
    }
    written
}
