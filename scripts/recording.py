#!/usr/bin/env python3
"""Records what a program prints in a terminal, and writes it as an animated SVG picture.

Usage: scripts/recording.py <picture.svg> <program> [argument ...]

The picture has no script and loads nothing. Where animations are off, it shows the last screen.
Only lines that appear one after the other are understood, not programs that move the cursor.
"""

import html
import os
import pty
import re
import struct
import sys
import time
import fcntl
import termios

COLUMNS, ROWS = 96, 24
CELL_WIDTH, LINE_HEIGHT, MARGIN = 7.8, 18, 14
# A pause in the program is at most this long in the picture, in seconds.
GAP_MAX = 1.2
# How long the last screen stays, in seconds.
END_PAUSE = 6
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")
COLOURS = [("✓", "ok"), ("✗", "bad"), ("▶", "go"), ("?", "ask"), ("⏸", "ask")]


def record(command):
    """The lines that the program prints, each with its time; the exit code."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    lines, rest, shown_at, last = [], b"", 0.0, time.monotonic()
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:
            read = b""
        if not read:
            break
        now = time.monotonic()
        shown_at += min(now - last, GAP_MAX)
        last = now
        *whole, rest = (rest + read).split(b"\n")
        for line in whole:
            text = ESCAPE.sub("", line.decode("utf-8", "replace"))
            for begin in range(0, max(len(text), 1), COLUMNS):
                lines.append((shown_at, text[begin : begin + COLUMNS]))
    _, status = os.waitpid(process, 0)
    return lines, os.waitstatus_to_exitcode(status)


def spans(text):
    """A line with its mark in colour; the mark alone says the same."""
    for mark, look in COLOURS:
        place = text.find(f" {mark} ")
        if 0 <= place < 12:
            begin, end = html.escape(text[: place + 1]), html.escape(text[place + 2 :])
            return f'{begin}<tspan class="{look}">{mark}</tspan>{end}'
    return html.escape(text)


def picture(prompt, lines):
    """The animated picture of these lines."""
    lines = [(0.0, prompt)] + [(at + 0.8, text) for at, text in lines]
    total = lines[-1][0] + END_PAUSE
    width = COLUMNS * CELL_WIDTH + 2 * MARGIN
    height = ROWS * LINE_HEIGHT + 2 * MARGIN
    share = lambda at: f"{100 * at / total:.2f}%"
    styles, texts = [], []
    for number, (at, text) in enumerate(lines):
        if number > 0:
            styles.append(f"@keyframes l{number}{{0%{{opacity:0}}{share(at)}{{opacity:1}}}}")
        animation = f' style="animation-name:l{number}"' if number else ""
        y = MARGIN + (number + 0.75) * LINE_HEIGHT
        if text:
            texts.append(f'<text x="{MARGIN}" y="{y:g}"{animation}>{spans(text)}</text>')
    scrolled = max(0, len(lines) - ROWS)
    steps = ["0%{transform:translateY(0)}"]
    for number, (at, _) in enumerate(lines):
        if number >= ROWS:
            up = (number - ROWS + 1) * LINE_HEIGHT
            steps.append(f"{share(at)}{{transform:translateY(-{up}px)}}")
    styles.append(f"@keyframes up{{{''.join(steps)}}}")
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">
<title>A recording of {html.escape(prompt[2:])} in a terminal</title>
<style>
text{{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}}
text[style],.up{{animation-duration:{total:.1f}s;animation-timing-function:step-end;animation-iteration-count:infinite}}
.up{{animation-name:up}}.ok{{fill:#7fd88f}}.bad{{fill:#ff8b8b}}.go{{fill:#82aaff}}.ask{{fill:#ffd479}}
@media (prefers-reduced-motion:reduce){{text[style],.up{{animation:none}}}}
{"".join(styles)}
</style>
<rect width="100%" height="100%" rx="8" fill="#10161f"/>
<clipPath id="screen"><rect x="0" y="{MARGIN}" width="{width:g}" height="{ROWS * LINE_HEIGHT}"/></clipPath>
<g clip-path="url(#screen)"><g class="up" transform="translate(0,-{scrolled * LINE_HEIGHT})" xml:space="preserve">
{chr(10).join(texts)}
</g></g>
</svg>
"""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    target, command = sys.argv[1], sys.argv[2:]
    lines, code = record(command)
    if code != 0:
        sys.exit(f"{' '.join(command)} ended with {code}:\n" + "\n".join(text for _, text in lines))
    prompt = "$ " + " ".join([os.path.basename(command[0])] + command[1:])
    with open(target, "w", encoding="utf-8") as file:
        file.write(picture(prompt, lines))


if __name__ == "__main__":
    main()
