//! The tools that the gates and the faults of a test name, with their places.

use mcptest_attack::{Attack, Place};
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
        names.extend(attacks.iter().flat_map(|attack| self.struck_tools(attack)));
        names
    }

    /// The tools that an attack strikes, or that it plants its canary in.
    fn struck_tools(&self, attack: &Attack) -> Vec<NamedTool> {
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
            let reference = ToolReference::new(pointer, tool).on_server(place.server.as_deref());
            Some(NamedTool::new(
                "attacks",
                reference,
                &part.document,
                "/attacks",
            ))
        });
        places.collect()
    }

    /// The tool that a fault strikes.
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
