# The formula for Homebrew; the workflow that makes a release fills in the version, the place and the checksums.
class Gt < Formula
  desc "Queue, dispatch and land the work of AI coding agents"
  homepage "@homepage@"
  version "@version@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

  on_linux do
    on_arm do
      url "@from@/gt-@version@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@sha256 aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@from@/gt-@version@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@sha256 x86_64-unknown-linux-musl@"
    end
  end

  depends_on "tmux" => :recommended

  def install
    bin.install "bin/gt"
    bin.install_symlink "gt" => "bd"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install Dir["share/bash-completion/completions/*"]
    zsh_completion.install Dir["share/zsh/site-functions/*"]
    fish_completion.install Dir["share/fish/vendor_completions.d/*"]
  end

  test do
    system bin/"gt", "--version"
    system bin/"gt", "install", testpath/"town"
  end
end
