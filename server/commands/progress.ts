/** How far something is, for people at a terminal and for logs. */

/** A line that is drawn again on a terminal; elsewhere a line for each tenth. */
export class Progress {
  #shown = -1;

  show(percent: number): void {
    const isTerminal = process.stdout.isTTY === true;
    const step = isTerminal ? Math.floor(percent) : Math.floor(percent / 10) * 10;
    if (step === this.#shown) return;
    this.#shown = step;
    if (!isTerminal) console.log(`${step} %`);
    else {
      const filled = Math.floor(step / 4);
      process.stdout.write(`\r[${'='.repeat(filled)}${' '.repeat(25 - filled)}] ${step} %`);
    }
  }

  end(): void {
    if (process.stdout.isTTY === true && this.#shown >= 0) process.stdout.write('\r\x1b[K');
  }
}
