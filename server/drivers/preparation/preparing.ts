/**
 * Reads the progress of scripts/prepare.js with a part of this host that it prepares while the
 * server runs.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isCode } from '../../platform/files.ts';
import type { Preparing } from '../../platform/host/preparing.ts';
import { ROOT } from '../../platform/program-files.ts';

/** Names of the parts in scripts/parts.js. */
export type Part = 'guest-image' | 'postgresql' | 'mariadb';

const FOLDER = join(ROOT, 'build/preparing');

/** Progress of a part; null: it is not being prepared now, for example because the program was killed. */
export function preparing(part: Part, folder = FOLDER): Preparing | null {
  try {
    const { pid, percent, step } = JSON.parse(readFileSync(join(folder, `${part}.json`), 'utf8'));
    process.kill(pid, 0);
    return { percent, step };
  } catch (error) {
    // The process exists, but belongs to another user, so we may not signal it.
    if (!isCode(error, 'EPERM')) return null;
    return { percent: null, step: 'preparing' };
  }
}

/** `it is being prepared: fetching packages (42 %)` */
export function saysPreparing({ percent, step }: Preparing): string {
  return `it is being installed: ${step}${percent === null ? '' : ` (${percent} %)`}`;
}

/** Advice to a caller in the meantime. */
export const WAIT_FOR_IT = 'wait a minute: resources created now start when it is ready';
