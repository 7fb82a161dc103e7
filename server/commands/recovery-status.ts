/** `cloudlet recovery status`: whether this cloud could be had back if it were lost now. */
import type { Config } from '../config/config.ts';
import { plural } from '../platform/plural.ts';
import { formatSize } from '../storage/format-size.ts';
import { askServer, type CallAsOperator } from './operator-call.ts';

interface Recovery {
  readonly problem: string | null;
  readonly fix: string | null;
  readonly points: number;
  readonly newest_at: string | null;
  readonly verified_at: string | null;
  readonly key_taken: boolean | null;
  readonly free_bytes: number | null;
  readonly warnings: readonly { readonly code: string; readonly detail: string; readonly fix: string }[];
}

/** Exit code 1 while points cannot be made, or the last one failed. */
export async function status(config: Config): Promise<number> {
  return askServer(config, async (call) => {
    const found = await recoveryOf(call);
    const { points, newest_at: newest, verified_at: verified, free_bytes: free } = found;
    console.log(
      `${plural(points, 'point')} can be restored${newest === null ? '' : `, the newest is of ${newest} UTC`}`,
    );
    console.log(verified === null ? 'None is verified' : `Last verified at ${verified} UTC`);
    if (found.key_taken === true) console.log('The recovery key was taken');
    if (free !== null) console.log(`${formatSize(free)} are free where they are kept`);
    tellWarnings(found);
    if (found.problem !== null) console.log(`${found.problem}. Fix: ${found.fix}`);
    return found.problem === null ? 0 : 1;
  });
}

/** What is in the way of a restore, if anything, with the fix. */
export async function warn(call: CallAsOperator): Promise<void> {
  tellWarnings(await recoveryOf(call));
}

function tellWarnings({ warnings }: Recovery): void {
  for (const { detail, fix } of warnings) console.log(`${detail}. Fix: ${fix}`);
}

async function recoveryOf(call: CallAsOperator): Promise<Recovery> {
  const { components } = await call<{ components: { recovery: Recovery } }>({
    method: 'GET',
    path: '/api/system/status',
  });
  return components.recovery;
}
