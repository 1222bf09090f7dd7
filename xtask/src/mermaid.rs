//! `cargo xtask vendor-mermaid`: makes the compressed Mermaid that the viewer holds.
//!
//! The package comes from the npm registry and is compared with the digest below, which is
//! the registry's own (`npm view mermaid@<version> dist.integrity`). To take another
//! version, change both, run this, and write the new digests into `assets/THIRD_PARTY.md`.

use std::fs;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

const VERSION: &str = "11.17.2";
const INTEGRITY: &str = "sha512-V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg==";

/// Node is there for npm anyway, and its gzip writes no time of day into the file.
const COMPRESS: &str = "\
const [tarball, integrity, from, to] = process.argv.slice(1);
const fs = require('fs'), crypto = require('crypto'), zlib = require('zlib');
const found = 'sha512-' + crypto.createHash('sha512').update(fs.readFileSync(tarball)).digest('base64');
if (found !== integrity) throw new Error(`${tarball} is ${found}, not ${integrity}`);
require('child_process').execFileSync('tar', ['xzf', tarball, 'package/dist/mermaid.min.js']);
const packed = zlib.gzipSync(fs.readFileSync(from), { level: 9 });
fs.writeFileSync(to, packed);
console.log(`${packed.length} bytes, sha256:${crypto.createHash('sha256').update(packed).digest('hex')}`);";

pub(crate) fn vendor(workspace: &Workspace) -> Result<()> {
    let directory = workspace.target.join("mermaid");
    fs::create_dir_all(&directory)?;
    let package = format!("mermaid@{VERSION}");
    process::run(process::command("npm", &directory).args(["pack", "--silent", &package]))?;
    let to = workspace.root.join("crates/agentd-viewer/assets/mermaid.min.js.gz");
    let mut node = process::command("node", &directory);
    node.args(["-e", COMPRESS, &format!("mermaid-{VERSION}.tgz"), INTEGRITY]);
    process::run(node.arg("package/dist/mermaid.min.js").arg(to))
}
