/** Where children run: which code, and as whom. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { UserRange } from '../../system/other-users.ts';
import { type LaunchedChild, launchChild } from './child-launch.ts';

const run = promisify(execFile);
const WRITER = fileURLToPath(new URL('./child-code.ts', import.meta.url));
const ENTRY = 'drivers/engine-sqlite/child.mjs';

export interface ChildHostOptions {
  /** Ours, for the code that children run; written anew. */
  readonly codeFolder: string;
  readonly users: UserRange | null;
}

export class ChildHost {
  readonly #options: ChildHostOptions;

  constructor(options: ChildHostOptions) {
    this.#options = options;
  }

  async prepare(): Promise<void> {
    // Stripping types is experimental, which Node would say on the operator's terminal.
    await run(process.execPath, ['--disable-warning=ExperimentalWarning', WRITER, this.#options.codeFolder]);
  }

  /** null: as ourselves. */
  uidOf(_number: number): number | null {
    return null;
  }

  launch(folder: string, _number: number): Promise<LaunchedChild> {
    return launchChild({ folder, entry: join(this.#options.codeFolder, ENTRY) });
  }
}
