//! The tools that the gates and the faults of a test name, with their places.

use mcptest_attack::{Attack, Place, WrittenGoal};
use mcptest_gate_api::{LoadedGate, ToolReference};
use mcptest_trace::fault::Fault;

use super::Checker;
use crate::import::Part;
use crate::tool_names::NamedTool;

impl Checker<'_> {
    pub(super) fn tool_names(
        &self,
        part: &Part,
        at: &str,
        gates: &[LoadedGate],
        faults: &[Fault],
        attacks: &[Attack],
    ) -> Vec<NamedTool> {
        let mut names = Vec::new();
        for gate in gates {
            let block = gate.info().block;
            let at = format!("{at}/{block}");
            let references = gate.tool_names().into_iter();
            names.extend(
                references.map(|reference| NamedTool::new(block, reference, &part.document, &at)),
            );
        }
        names.extend(faults.iter().filter_map(|fault| self.target(fault)));
        let own: Vec<String> = attacks.iter().filter_map(Attack::own_tool).collect();
        names.extend((attacks.iter()).flat_map(|attack| self.attack_tools(attack, &own)));
        names
    }

    /// The tools that an attack applies to, that it plants its canary in, or whose calls are its
    /// goal. `own` are the tools that attacks add.
    fn attack_tools(&self, attack: &Attack, own: &[String]) -> Vec<NamedTool> {
        let written = attack.written();
        let found = self.parts.iter().find_map(|part| {
            let mut all = part.file.attacks.iter();
            let index = all.position(|other| other.name == written.name)?;
            Some((part, index))
        });
        let Some((part, index)) = found else {
            return Vec::new();
        };
        // The tool of `place: tool` is one that no server has.
        let target = (written.place != Place::Tool).then_some(&written.target);
        let places = [("target", target), ("plant", written.plant.as_ref())];
        let places = places.into_iter().filter_map(|(key, place)| {
            let place = place?;
            let tool = place.tool.as_deref()?;
            let pointer = format!("/{index}/{key}/tool");
            Some(ToolReference::new(pointer, tool).on_server(place.server.as_deref()))
        });
        let steps = goal_tools(written.goal.as_ref(), own).into_iter();
        let steps = steps.map(|(pointer, tool)| {
            // No agent can obey with a tool that is not there, which would look like a pass.
            ToolReference::new(format!("/{index}/goal/{pointer}"), tool).optional()
        });
        let references = places.chain(steps);
        references
            .map(|reference| NamedTool::new("attacks", reference, &part.document, "/attacks"))
            .collect()
    }

    /// The tool that a fault applies to.
    fn target(&self, fault: &Fault) -> Option<NamedTool> {
        let tool = fault.target.tool.as_deref()?;
        let (part, index) = self.parts.iter().find_map(|part| {
            let mut written = part.file.faults.iter();
            let index = written.position(|written| written.name == fault.name)?;
            Some((part, index))
        })?;
        let pointer = format!("/{index}/target/tool");
        let server = fault.target.server.as_deref();
        let reference = ToolReference::new(pointer, tool).on_server(server);
        Some(NamedTool::new(
            "faults",
            reference,
            &part.document,
            "/faults",
        ))
    }
}

/// The tools of a goal's steps, each with its place below the goal. A step that names several tools
/// is met by any of them, and one of an attack's own tools needs no server.
fn goal_tools<'a>(goal: Option<&'a WrittenGoal>, own: &[String]) -> Vec<(String, &'a str)> {
    let Some(goal) = goal else {
        return Vec::new();
    };
    let one = goal.call.iter().map(|step| ("call/tool".to_owned(), step));
    let several = goal.calls.iter().flatten().enumerate();
    let several = several.map(|(index, step)| (format!("calls/{index}/tool"), step));
    let steps = one.chain(several).filter_map(|(pointer, step)| {
        let [tool] = &step.tool.as_ref()?.0[..] else {
            return None;
        };
        Some((pointer, tool.as_str()))
    });
    steps.filter(|(_, tool)| !is_own(tool, own)).collect()
}

/// Returns true if a name is that of a tool that an attack adds, on any server.
fn is_own(name: &str, own: &[String]) -> bool {
    own.iter().any(|tool| {
        let before = name.strip_suffix(tool.as_str());
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}
