/** The built-in image, built by the set-up; if it could not, it recorded why. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Preparing } from '../../../platform/host/preparing.ts';
import { ROOT } from '../../../platform/program-files.ts';
import { preparing, saysPreparing, WAIT_FOR_IT } from '../../preparation/preparing.ts';

export interface TinyImage {
  readonly kernel: string;
  readonly initrd: string;
  /** Folder in which the set-up reports its progress, if not the usual one. */
  readonly progress?: string;
}

interface NoTinyImage {
  readonly problem: string;
  readonly fix: string;
  /** The set-up builds the image automatically. */
  readonly preparing?: Preparing;
}

/** Files that set-up builds; missing until then. */
export const TINY_FOLDER = join(ROOT, 'build/guest');
const REASON = 'problem.json';
const NOT_TRIED: NoTinyImage = {
  problem: 'the built-in image has not been built',
  fix: 'run the set-up again (node scripts/setup.js whole): it builds the image',
};

export function tinyIn(folder: string): TinyImage {
  return { kernel: join(folder, 'tiny-kernel'), initrd: join(folder, 'tiny-initrd') };
}

/** Why there is no built-in image, from the set-up; null: the image exists. */
export function whyNoTinyImage({ kernel, initrd, progress }: TinyImage): NoTinyImage | null {
  if (existsSync(kernel) && existsSync(initrd)) return null;
  const coming = preparing('guest-image', progress);
  if (coming !== null) {
    const problem = `${NOT_TRIED.problem}: ${saysPreparing(coming)}`;
    return { problem, fix: WAIT_FOR_IT, preparing: coming };
  }
  try {
    const { reason, fix } = JSON.parse(readFileSync(join(kernel, '..', REASON), 'utf8'));
    // Everyone may read it in the status; it must not reveal where this host gets its packages.
    const plain = String(reason).replace(/\S*:\/\/\S*/g, '…');
    return { problem: `${NOT_TRIED.problem}: ${plain}`, fix: String(fix) };
  } catch {
    return NOT_TRIED;
  }
}

const LOOK_MS = 500;

/** Resolves when the host is no longer building it. If it is then missing, starts report why. */
export async function whenTinyBuilt(tiny: TinyImage, signal: AbortSignal): Promise<void> {
  while (whyNoTinyImage(tiny)?.preparing !== undefined) await sleep(LOOK_MS, undefined, { signal });
}
