//! `--attacks FILE`: the attacks of a session of the proxy or the mock server.

use std::path::Path;

use mcptest_attack::{Attack, AttackRun, WrittenAttack};
use mcptest_yaml::Diagnostics;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cli::AttackArgs;
use crate::failure::Failure;
use crate::files;

/// A file with attacks, as a suite has them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttacksFile {
    /// The attacks.
    #[schemars(length(min = 1))]
    attacks: Vec<WrittenAttack>,
}

/// The attacks of a session, if any are asked for.
pub(crate) fn of_session(
    args: &AttackArgs,
    test: Option<&str>,
    run: Option<u32>,
    server: Option<&str>,
) -> Result<Option<AttackRun>, Failure> {
    let Some(path) = &args.attacks else {
        return Ok(None);
    };
    let mut attacks = read(path)?;
    if let Some(unknown) = args
        .attack
        .iter()
        .find(|name| !attacks.iter().any(|attack| attack.name() == name.as_str()))
    {
        let names: Vec<&str> = attacks.iter().map(Attack::name).collect();
        return Err(Failure::Message(format!(
            "`{}` has no attack `{unknown}`; it has {}",
            path.display(),
            names.join(", ")
        )));
    }
    if !args.attack.is_empty() {
        attacks.retain(|attack| args.attack.iter().any(|name| name == attack.name()));
    }
    let servers: Vec<String> = server.map(str::to_owned).into_iter().collect();
    let test = test.unwrap_or_default();
    let run = u64::from(run.unwrap_or(1));
    Ok(Some(AttackRun::new(&attacks, test, run, &servers)))
}

fn read(path: &Path) -> Result<Vec<Attack>, Failure> {
    let name = path.display().to_string();
    let bytes = files::read(path)?;
    let (file, document) = mcptest_yaml::from_bytes::<AttacksFile>(&name, &bytes)?;
    let mut attacks: Vec<Attack> = Vec::new();
    let mut problems = Vec::new();
    for (index, written) in file.attacks.iter().enumerate() {
        let at = format!("/attacks/{index}");
        if attacks.iter().any(|attack| attack.name() == written.name) {
            let message = format!("duplicate attack `{}`", written.name);
            problems.push(document.diagnostic_at(&format!("{at}/name"), message));
        }
        match written.compile() {
            Ok(attack) => attacks.push(attack),
            Err(found) => problems.extend(found.iter().map(|problem| {
                let place = format!("{at}{}", problem.pointer);
                let diagnostic = document.diagnostic_at(&place, &problem.message);
                match &problem.help {
                    Some(help) => diagnostic.help(help.clone()),
                    None => diagnostic,
                }
            })),
        }
    }
    if problems.is_empty() {
        Ok(attacks)
    } else {
        Err(Diagnostics(problems).into())
    }
}
