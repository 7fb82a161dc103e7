/** The progress line of transfers: bytes, rate, time left. */
import { columns, isTerminal } from '../environment.ts';
import { counted, type Output, printable, sizeText } from '../output.ts';

const TERMINAL_MS = 200;
const LOG_MS = 5_000;
/** The rate covers only recent time, because networks vary. */
const RATE_WINDOW_MS = 5_000;

export class Progress {
  readonly #output: Output;
  readonly #isTerminal = isTerminal(process.stderr);
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #startedMs = performance.now();
  readonly #samples: { readonly ms: number; readonly bytes: number }[] = [];
  #bytes = 0;
  #files = 0;
  #totalBytes = 0;
  #isWhole = false;
  #shown = false;

  constructor(output: Output) {
    this.#output = output;
    if (output.isQuiet) return;
    this.#timer = setInterval(() => this.#show(), this.#isTerminal ? TERMINAL_MS : LOG_MS);
    this.#timer.unref();
  }

  get files(): number {
    return this.#files;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds expected bytes. */
  expect(bytes: number): void {
    this.#totalBytes += bytes;
  }

  /** All expected bytes are known: from now on, the time left is shown. */
  expectNoMore(): void {
    this.#isWhole = true;
  }

  moved(bytes: number): void {
    this.#bytes += bytes;
  }

  fileDone(): void {
    this.#files += 1;
  }

  /** A line about one file, above the progress. */
  note(text: string): void {
    this.#clear();
    this.#output.note(text);
  }

  warn(text: string): void {
    this.#clear();
    this.#output.warn(text);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#clear();
  }

  /** `12 files, 3.4 MiB in 1.2 s` */
  summary(): string {
    const seconds = (performance.now() - this.#startedMs) / 1000;
    return `${counted(this.#files, 'file')}, ${sizeText(this.#bytes)} in ${seconds.toFixed(1)} s`;
  }

  #show(): void {
    const rate = this.#rate();
    const parts = [counted(this.#files, 'file'), sizeText(this.#bytes), `${sizeText(rate)}/s`];
    if (this.#isWhole && rate > 0) {
      const left = Math.max(0, this.#totalBytes - this.#bytes);
      parts[1] = `${sizeText(this.#bytes)} of ${sizeText(this.#totalBytes)}`;
      parts.push(`${timeText(left / rate)} left`);
    }
    const line = printable(parts.join(', '));
    if (!this.#isTerminal) {
      process.stderr.write(`${line}\n`);
      return;
    }
    process.stderr.write(`\r\u001b[K${line.slice(0, columns() - 1)}`);
    this.#shown = true;
  }

  #rate(): number {
    const now = performance.now();
    this.#samples.push({ ms: now, bytes: this.#bytes });
    while (this.#samples.length > 2 && now - (this.#samples[0]?.ms ?? now) > RATE_WINDOW_MS)
      this.#samples.shift();
    const [first] = this.#samples;
    if (first === undefined || now - first.ms < 1) return 0;
    return Math.max(0, ((this.#bytes - first.bytes) * 1000) / (now - first.ms));
  }

  #clear(): void {
    if (this.#shown) process.stderr.write('\r\u001b[K');
    this.#shown = false;
  }
}

function timeText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
