# Template: `cargo xtask dist` fills in the version, the address and the checksums.
class Mcptest < Formula
  desc "Tests for MCP servers and the agents that use them"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/mcptest-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256 aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/mcptest-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256 x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/mcptest-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/mcptest-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "mcptest"
    bash_completion.install "completions/mcptest.bash" => "mcptest"
    zsh_completion.install "completions/_mcptest"
    fish_completion.install "completions/mcptest.fish"
    man1.install Dir["man/man1/*.1"]
  end

  test do
    (testpath/"tools.yml").write <<~YAML
      mock_server:
        name: clock
        tools:
          - { name: now, response: { content: [noon] } }
    YAML
    (testpath/"mcptest.yml").write <<~YAML
      servers:
        clock: { command: [mcptest, mock, --tools-from, tools.yml] }
      tools:
        - { name: tells the time, server: clock, tool: now, expect: [{ result.text: noon }] }
    YAML
    assert_match "1 passed", shell_output("#{bin}/mcptest run mcptest.yml")
  end
end
