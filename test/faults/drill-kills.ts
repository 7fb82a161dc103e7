/** Restore drills that are killed at a stage, or with their cloud, and their remains. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { eventually } from '../harness/waiting.ts';

/** In order. */
const STAGES = [
  'preparing',
  'reading',
  'restoring',
  'starting',
  'comparing',
  'opening databases',
  'replaying a log',
  'booting a machine',
  'removing',
];
const GROUPS = '/sys/fs/cgroup';

export interface Drilled {
  readonly lost: LosableCloud;
  readonly pointId: string;
  /** Settings of its cloud, in addition to the initial ones. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A drill is killed at that stage; then its cloud is. */
export function testKillsAt(stage: string, of: () => Drilled | string): void {
  test(`its process is killed while ${stage}`, async (t) => {
    const drilled = of();
    if (typeof drilled === 'string') return t.skip(drilled);
    const found = await reach(drilled, stage);
    t.diagnostic(`killed while ${found}`);
    const { lost, pointId } = drilled;
    const all = drillProcesses(lost);
    assert.ok(all.length > 0 || found === 'removing', 'nothing is there to be killed');
    for (const pid of all) if (isDrill(lost, pid)) process.kill(Number(pid), 'SIGKILL');
    const isOver = async () => (await lost.admin.expect(200, `${POINTS}/${pointId}`)).drilling === null;
    await eventually('it ended', isOver);
    assertNothingLeft(lost);
  });

  test(`its cloud is killed while ${stage}`, async (t) => {
    const drilled = of();
    if (typeof drilled === 'string') return t.skip(drilled);
    const { lost, env } = drilled;
    t.diagnostic(`killed while ${await reach(drilled, stage)}`);
    await lost.cloud.crash();
    await eventually('its processes are gone', () => drillProcesses(lost).length === 0);
    await lost.startAgain(env);
    await eventually('its files are gone', () => readdirSync(folderOf(lost)).length === 0);
    assertNothingLeft(lost);
  });
}

/** One that was faster than the check is killed wherever it is. */
async function reach({ lost, pointId }: Drilled, stage: string): Promise<string> {
  const path = `${POINTS}/${pointId}`;
  await lost.admin.expect(200, `${path}/drill`, POST);
  const wanted = STAGES.indexOf(stage);
  assert.ok(wanted > 0, stage);
  const found = await eventually(`the drill is ${stage}`, async () => {
    const { drilling, drill } = await lost.admin.expect(200, path);
    assert.notEqual(drilling, null, `it ended before: ${JSON.stringify(drill)}`);
    return STAGES.indexOf(drilling) >= wanted && drilling;
  });
  ownerOf(lost);
  return found;
}

function folderOf({ dataDir }: LosableCloud): string {
  return join(dataDir, 'drill');
}

function assertNothingLeft(lost: LosableCloud): void {
  assert.deepEqual([drillProcesses(lost), readdirSync(folderOf(lost)), groupsOf(lost)], [[], [], []]);
}

/** Process ids of everything that works in a scratch directory, or is a drill's process. */
function drillProcesses(lost: LosableCloud): string[] {
  return readdirSync('/proc').filter((pid) => isDrill(lost, pid) || worksIn(folderOf(lost), pid));
}

function worksIn(folder: string, pid: string): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return `${words} ${readlinkSync(`/proc/${pid}/cwd`)}`.includes(folder);
  } catch {
    // It ended meanwhile.
    return false;
  }
}

/** Of this cloud, or of a killed one. */
function isDrill(lost: LosableCloud, pid: string): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
    return words.includes('build.drill-main.js') && environment.includes(lost.dataDir);
  } catch {
    // It ended meanwhile.
    return false;
  }
}

/** Names of drills of this cloud that have control groups: those of others may come and go. */
function groupsOf(lost: LosableCloud): string[] {
  if (!existsSync(GROUPS)) return [];
  const groups = readdirSync(GROUPS, { recursive: true, encoding: 'utf8' });
  return groups.filter((name) => /cloudlet-drill-[^/]*$/.test(name) && name.includes(ownerOf(lost)));
}

const owners = new WeakMap<LosableCloud, string>();
/** From the names of its scratch directories, once there was one. */
function ownerOf(lost: LosableCloud): string {
  const [name] = readdirSync(folderOf(lost));
  const owner = owners.get(lost) ?? name?.split('-')[1] ?? 'no drill yet';
  if (name !== undefined) owners.set(lost, owner);
  return owner;
}
