import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { notInstalled } from '../../../scripts/installed.ts';
import { withoutFirst, wordsOf } from './processor-order.ts';

test('a list of processors without its first', () => {
  const lists: Record<string, string | null> = {
    '0': null,
    '0-1': '1',
    '0-3': '1-3',
    '2,4-7': '4-7',
    '4-5,9': '5,9',
    '': null,
  };
  for (const [list, others] of Object.entries(lists)) assert.equal(withoutFirst(list), others, list);
});

test('a list of processors as words of bits', () => {
  const lists: Record<string, number[]> = {
    '0': [1],
    '1-3': [0b1110],
    '0-31': [0xffff_ffff],
    '31-32': [0x8000_0000, 1],
    '2,65': [4, 0, 2],
  };
  for (const [list, words] of Object.entries(lists)) assert.deepEqual(wordsOf(list), words, list);
});

/** Comes first with its threads `named` and `other`, and prints who has which nice value then. */
const COMING_FIRST = `
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
const [module, nice] = process.argv.slice(1);
const { comeFirst } = await import(module);
setPriority(Number(nice));
const threads = ['named', 'other'].map((name) => new Worker('setInterval(() => {}, 1000)', { eval: true, name }));
await Promise.all(threads.map((thread) => once(thread, 'online')));
await comeFirst(['named']);
const all = Object.fromEntries(readdirSync('/proc/self/task').map((tid) =>
  [readFileSync('/proc/self/task/' + tid + '/comm', 'latin1').trim(), getPriority(Number(tid))]));
const numbersOf = (tid) =>
  readFileSync('/proc/self/task/' + tid + '/stat', 'latin1').split(') ').at(-1).split(' ');
// Fields 40 and 41 of proc_pid_stat(5): real-time priority; policy, 2: SCHED_RR.
const realTime = (name) => readdirSync('/proc/self/task')
  .filter((tid) => readFileSync('/proc/self/task/' + tid + '/comm', 'latin1').trim() === name)
  .map((tid) => numbersOf(tid).slice(37, 39).map(Number));
const sliceNs = Number(/se\\.slice +: +(\\d+)/.exec(readFileSync('/proc/self/sched', 'latin1'))?.[1]);
let group = null;
try { group = Number(readFileSync('/proc/self/autogroup', 'latin1').split(' nice ')[1]); } catch {}
console.log(JSON.stringify({
  main: getPriority(), named: all.named, other: all.other, group, sliceNs,
  started: Number(execFileSync('nice', { encoding: 'utf8' })),
  policies: [numbersOf(process.pid).slice(37, 39).map(Number), ...realTime('named'), ...realTime('other')],
  collectors: realTime('node-V8Worker'),
  startedPolicy: execFileSync('sh', ['-c', 'read -r line < /proc/self/stat; echo "$line"'], { encoding: 'utf8' })
    .split(' ').slice(39, 41).map(Number),
}));
process.exit();
`;

async function afterComingFirst({ nice, hasSession }: { nice: number; hasSession: boolean }) {
  const module = new URL('./processor-order.ts', import.meta.url).href;
  const words = ['--input-type=module', '--eval', COMING_FIRST, module, String(nice)];
  const { stdout } = spawn(process.execPath, words, {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: hasSession,
  });
  return JSON.parse(await text(stdout));
}

const skip = notInstalled('perl') || (process.getuid?.() === 0 ? false : 'only root may raise a process');

test('Cloudlet and the thread that writes come first, and nothing that they start', { skip }, async () => {
  const { main, named, other, started, group } = await afterComingFirst({ nice: 0, hasSession: true });
  assert.deepEqual({ main, named, other, started }, { main: -10, named: -10, other: 0, started: 0 });
  if (existsSync('/proc/self/autogroup')) assert.equal(group, -10);
});

test('none of its threads is a real-time thread: it would starve the host', { skip }, async () => {
  const { policies, collectors, startedPolicy } = await afterComingFirst({ nice: 0, hasSession: true });
  assert.ok(collectors.length > 0);
  for (const policy of [startedPolicy, ...policies, ...collectors]) assert.deepEqual(policy, [0, 0]);
});

test('the session of the shell that started Cloudlet is as before', { skip }, async () => {
  const { main, group } = await afterComingFirst({ nice: 0, hasSession: false });
  assert.equal(main, -10);
  assert.notEqual(group, -10);
});

test('a nice value that the operator gave stays', { skip }, async () => {
  const { main, named, started, group } = await afterComingFirst({ nice: 3, hasSession: true });
  assert.deepEqual({ main, named, started }, { main: 3, named: 3, started: 3 });
  assert.notEqual(group, -10);
  const raised = await afterComingFirst({ nice: -4, hasSession: true });
  assert.deepEqual([raised.main, raised.started], [-4, 0]);
  if (existsSync('/proc/self/autogroup')) assert.equal(raised.group, -4);
});

test('Cloudlet asks for little of the processor at a time', { skip }, async () => {
  const { sliceNs } = await afterComingFirst({ nice: 0, hasSession: true });
  // Linux before 6.12 does not have this setting, or does not show it.
  if (sliceNs > 0 && sliceNs !== null) assert.equal(sliceNs, 100_000);
});
