//! `list`: the runners of a configuration.

use super::WhichFile;
use super::entry_file::EntryFile;
use runner_config::secret::short_token;
use std::io::Write as _;
use step_console::complaint::plain;
use step_console::exit::Exit;

/// One line for each entry, its token shortened to what logs show of it.
/// # Errors
/// There is no such file, or it cannot be used.
pub fn run(which: &WhichFile) -> anyhow::Result<Exit> {
    let file = EntryFile::read(which)?;
    let settings = file.settings()?;
    let mut out = anstream::stdout();
    for runner in settings.entries() {
        let executor = runner.executor.map_or("no executor", |executor| executor.name());
        let is_refused = settings.refused.iter().any(|refused| refused.runner.index == runner.index);
        let standing = if is_refused { "  refused, see `runner-core config check`" } else { "" };
        writeln!(
            out,
            "{}  executor={executor}  id={}  token={}  url={}{standing}",
            plain(&runner.shown_name()),
            runner.id,
            plain(short_token(runner.token.expose())),
            plain(&runner.url)
        )?;
    }
    Ok(Exit::Done)
}
