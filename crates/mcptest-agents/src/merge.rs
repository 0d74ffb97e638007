//! A preset under the keys of a suite.

use crate::file::{AgentFile, OutputFile, ResponseFile};

/// Puts the written keys over those of the preset. Mappings are merged by key; the suite's error
/// rules come first.
pub(crate) fn merge(written: &AgentFile, preset: AgentFile) -> AgentFile {
    let mut merged = preset;
    let own = written.clone();
    // One of these replaces the other two: an agent is started in one way.
    if own.command.is_some() || own.acp.is_some() || own.url.is_some() {
        merged.command = None;
        merged.acp = None;
        merged.url = None;
    }
    macro_rules! take {
        ($($key:ident),*) => {
            $(if own.$key.is_some() { merged.$key = own.$key; })*
        };
    }
    take!(
        preset,
        name,
        about,
        version,
        tested,
        model,
        command,
        acp,
        url,
        method,
        body,
        stream,
        stdin,
        servers,
        tools,
        servers_by,
        transport,
        usage,
        mode,
        permissions,
        workspace,
        shared_cache,
        timeout,
        startup_timeout,
        idle_timeout,
        call_timeout,
        keep,
        base_url,
        api_key_env
    );
    merged.headers.extend(own.headers);
    merged.env.extend(own.env);
    merged.blocks.extend(own.blocks);
    merged.files.extend(own.files);
    for name in own.pass_env {
        if !merged.pass_env.contains(&name) {
            merged.pass_env.push(name);
        }
    }
    let mut errors = own.errors;
    errors.append(&mut merged.errors);
    merged.errors = errors;
    merged.output = match (own.output, merged.output) {
        (Some(own), Some(base)) => Some(merge_output(own, base)),
        (own, base) => own.or(base),
    };
    merged.response = match (own.response, merged.response) {
        (Some(own), Some(base)) => Some(merge_response(own, base)),
        (own, base) => own.or(base),
    };
    merged
}

fn merge_output(own: OutputFile, base: OutputFile) -> OutputFile {
    OutputFile {
        format: own.format.or(base.format),
        r#final: own.r#final.or(base.r#final),
        texts: own.texts.or(base.texts),
        tokens: own.tokens.or(base.tokens),
        cost: own.cost.or(base.cost),
        stop: own.stop.or(base.stop),
        error: own.error.or(base.error),
        ended: own.ended.or(base.ended),
        servers: own.servers.or(base.servers),
        session: own.session.or(base.session),
        calls: own.calls.or(base.calls),
        file: own.file.or(base.file),
    }
}

fn merge_response(own: ResponseFile, base: ResponseFile) -> ResponseFile {
    ResponseFile {
        r#final: own.r#final.or(base.r#final),
        tokens: own.tokens.or(base.tokens),
        cost: own.cost.or(base.cost),
        error: own.error.or(base.error),
        ended: own.ended.or(base.ended),
        session: own.session.or(base.session),
        calls: own.calls.or(base.calls),
    }
}
