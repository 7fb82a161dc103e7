/** `cloudlet recovery drill`: restores a point beside the running cloud, tests it, and removes it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { recoveryKeyText } from '../../recovery/repository/recovery-keys.ts';
import type { Words } from '../command.ts';
import { askServer, type CallAsOperator } from '../operator-call.ts';
import { givenRecoveryKey } from '../terminal.ts';
import { type Drill, POLL_MS, type Point, pathsOf } from './recovery-points.ts';

/** Waits for the end. Exit code 1 unless every drill passed. */
export async function drill(config: Config, words: Words): Promise<number> {
  const { values, positionals } = words;
  const isKeyTried = values['with-key'] !== undefined || values['key-file'] !== undefined;
  const body = isKeyTried
    ? { recovery_key: recoveryKeyText(await givenRecoveryKey(values['key-file'])) }
    : {};
  const [verb = 'drill', which = 'latest'] = positionals;
  return askServer(config, async (call) => {
    let code = 0;
    for (const path of await pathsOf({ ...words, positionals: [verb, which] }, call)) {
      const point = await drillOne(call, path, body);
      if (point.drill?.result !== 'passed') code = 1;
    }
    return code;
  });
}

async function drillOne(call: CallAsOperator, path: string, body: unknown): Promise<Point> {
  // Read before: a short drill may have ended when the call returns.
  const before = (await call<Point>({ method: 'GET', path })).drill?.started_at;
  let point = await call<Point>({ method: 'POST', path: `${path}/drill`, body });
  let stage: string | null = null;
  while (point.drilling !== null) {
    if (point.drilling !== stage && process.stdout.isTTY) console.log(`${point.drilling} …`);
    stage = point.drilling;
    await sleep(POLL_MS);
    point = await call<Point>({ method: 'GET', path });
  }
  if (point.drill === null || point.drill.started_at === before)
    console.log(`${point.point_id} was not drilled: the drill was cancelled`);
  else tellDrill(point.point_id, point.drill);
  return point;
}

const WORDS = { passed: 'ok', failed: 'FAILED', skipped: 'skipped' };

function tellDrill(id: string, { result, seconds, reason, checks }: Drill): void {
  for (const { name, state, detail } of checks) {
    console.log(`  ${WORDS[state as keyof typeof WORDS].padEnd(8)}${name.padEnd(22)}${detail}`);
  }
  if (result === 'skipped') console.log(`${id} was not drilled: ${reason}`);
  else if (result === 'failed') console.log(`${id} failed its drill after ${seconds} s. ${reason}`);
  else console.log(`${id} passed its drill in ${seconds} s`);
}
