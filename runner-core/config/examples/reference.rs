//! Prints `docs/reference/config.md`.

fn main() -> std::io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "this program is outside the crate and prints")]
    let mut out = std::io::stdout();
    std::io::Write::write_all(&mut out, runner_config::reference::page().as_bytes())
}
