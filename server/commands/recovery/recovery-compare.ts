/** `cloudlet recovery compare`: a restored data directory against its point, with no running cloud. */
import { resolve } from 'node:path';
import { targetAt } from '../../cloud/recovery-target.ts';
import { compareDirectory } from '../../cloud/restored-directory.ts';
import type { Config } from '../../config/config.ts';
import { findPoint } from '../../recovery/points/restore.ts';
import { Repository } from '../../recovery/repository/repository.ts';
import { unlockRepository } from '../../recovery/repository/repository-head.ts';
import { UsageError, type Words } from '../command.ts';
import { givenRecoveryKey, Progress } from '../terminal.ts';
import { tellFound } from './recovery-restore.ts';

const SAMPLE = 64;
const DIFFERENT = 1;
const UNKNOWN = 2;

/** Exit code 0: equal; 1: different; 2: not comparable. */
export async function compare(config: Config, { positionals, values }: Words): Promise<number> {
  const { from, to } = values;
  if (from === undefined || to === undefined)
    throw new UsageError('compare needs --from and --to; see cloudlet recovery --help');
  const directory = resolve(to);
  const bar = new Progress();
  try {
    const target = targetAt(from, config);
    const keys = await unlockRepository(target, await givenRecoveryKey(values['key-file']));
    const repository = new Repository(target, keys);
    const found = await findPoint(repository, positionals[1] ?? 'latest');
    tellFound(found);
    const { manifest } = found;
    const checks = await compareDirectory({
      repository,
      manifest,
      directory,
      sampled: values.sample === undefined ? null : SAMPLE,
      onProgress: ({ bytes, totalBytes }) => bar.show((bytes / Math.max(1, totalBytes)) * 100),
    });
    bar.end();
    for (const { name, state, detail } of checks) {
      const [first = '', ...more] = detail.split('\n');
      console.log(
        `  ${state === 'passed' ? 'same' : 'DIFFERS'.padEnd(4)}`.padEnd(11) + name.padEnd(22) + first,
      );
      for (const line of more) console.log(' '.repeat(33) + line);
    }
    const different = checks.filter(({ state }) => state !== 'passed').length;
    const what = `${directory} and ${manifest.point_id}, taken at ${manifest.cut_at} UTC,`;
    console.log(different === 0 ? `${what} are the same` : `${what} differ`);
    return different === 0 ? 0 : DIFFERENT;
  } catch (error) {
    bar.end();
    console.error(`cloudlet: Could not compare: ${(error as Error).message}`);
    return UNKNOWN;
  }
}
