/**
 * The bench's own processes: yardsticks and load generators never share a process with the measured program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Runs a program to its end. Rejects with its output when it fails. */
export async function runProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}: ${stderr || stdout}`);
  return stdout;
}

/** Runs a file of this folder on the pinned Node with one JSON argument and reads its one line of JSON. */
export async function runChild<Result>(
  script: URL,
  input: object,
  env: Readonly<Record<string, string>> = {},
): Promise<Result> {
  const output = await runProgram(process.execPath, [fileURLToPath(script), JSON.stringify(input)], env);
  return JSON.parse(output) as Result;
}

/** A process that serves until it is stopped. */
export class Server {
  readonly #child: ChildProcess;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
    const kill = () => child.kill();
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
  }

  /** The file prints its port as its first line. */
  static async start(script: URL, args: readonly string[]): Promise<Server> {
    const child = spawn(process.execPath, [fileURLToPath(script), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [text] = await once(child.stdout, 'data');
    return new Server(child, Number(String(text).trim()));
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async stop(): Promise<void> {
    if (!this.isRunning) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exit;
  }
}

/** The command-line argument of a child. */
export function childInput<Input>(): Input {
  return JSON.parse(process.argv[2] ?? '{}') as Input;
}
