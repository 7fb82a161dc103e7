import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { committableBytes, hostLoad, patienceMs, readHostMemory } from './host-facts.ts';

test('the load of a host is per processor, and never below 1', () => {
  assert.equal(hostLoad(50, 2), 25);
  assert.equal(hostLoad(0.4, 2), 1);
  assert.equal(hostLoad(0, 2), 1);
  assert.ok(hostLoad() >= 1);
});

test('patience is never less than on a quiet host', () => assert.ok(patienceMs(1000) >= 1000));

const MIB = 1024 * 1024;
const MEMINFO = 'MemTotal:       8388608 kB\nMemFree:  100 kB\nMemAvailable:    6291456 kB\n';

/** A host with 8 GiB, 6 of which are available, and with these files: its root. */
function hostWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-memory-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [name, text] of Object.entries({ 'proc/meminfo': MEMINFO, ...files })) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${text}\n`);
  }
  return root;
}

/** Its figures, in MiB. */
function memoryOf(t: TestContext, files: Readonly<Record<string, string>>) {
  const { totalBytes, availableBytes, isLimited } = readHostMemory(hostWith(t, files));
  return [totalBytes / MIB, availableBytes / MIB, isLimited];
}

test('without a limit it is what /proc/meminfo says', (t) => {
  assert.deepEqual(memoryOf(t, {}), [8192, 6144, false]);
  assert.deepEqual(
    memoryOf(t, {
      'proc/self/cgroup': '0::/',
      'sys/fs/cgroup/memory.max': 'max',
      'sys/fs/cgroup/memory.current': String(7000 * MIB),
    }),
    [8192, 6144, false],
  );
});

test('what is left of promises counts only where the host promises no more than it has', (t) => {
  const left = (mode: string, limit: number, given: number) =>
    committableBytes(
      hostWith(t, {
        'proc/sys/vm/overcommit_memory': mode,
        'proc/meminfo': `CommitLimit:    ${limit} kB\nCommitted_AS:     ${given} kB`,
      }),
    );
  assert.equal(left('0', 4096, 1024), null);
  assert.equal(left('1', 4096, 1024), null);
  assert.equal(left('2', 4096, 1024), 3 * MIB);
  assert.equal(left('2', 4096, 8192), 0);
});

test('a limit of version 2 counts, less what is used and cannot be dropped', (t) => {
  const group = {
    'proc/self/cgroup': '0::/',
    'sys/fs/cgroup/memory.max': String(2048 * MIB),
    'sys/fs/cgroup/memory.current': String(1500 * MIB),
    'sys/fs/cgroup/memory.stat': `anon 5\ninactive_file ${1000 * MIB}\nactive_file 7`,
  };
  assert.deepEqual(memoryOf(t, group), [2048, 1548, true]);
  const high = { ...group, 'sys/fs/cgroup/memory.high': String(1024 * MIB) };
  assert.deepEqual(memoryOf(t, high), [1024, 524, true]);
});

test('a group above ours may be the narrower one', (t) => {
  const slice = 'sys/fs/cgroup/system.slice';
  const figures = memoryOf(t, {
    'proc/self/cgroup': '0::/system.slice/cloudlet.service/cloudlet-control',
    [`${slice}/cloudlet.service/memory.max`]: String(4096 * MIB),
    [`${slice}/cloudlet.service/memory.current`]: '0',
    [`${slice}/memory.max`]: String(1024 * MIB),
    [`${slice}/memory.current`]: String(1100 * MIB),
  });
  assert.deepEqual(figures, [1024, 0, true]);
});

test('a limit of version 1 counts, also where the container sees its group as the root', (t) => {
  const figures = memoryOf(t, {
    'proc/self/cgroup': '9:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': String(2048 * MIB),
    'sys/fs/cgroup/memory/memory.usage_in_bytes': String(512 * MIB),
    'sys/fs/cgroup/memory/memory.stat': `inactive_file 1\ntotal_inactive_file ${12 * MIB}`,
  });
  assert.deepEqual(figures, [2048, 1548, true]);
});

/** Puts the shell into a new group of this host with 2 GiB, then becomes the program. */
const LIMITED = `
  if [ -e /sys/fs/cgroup/cgroup.controllers ]
  then group=/sys/fs/cgroup/$1; file=memory.max
  else group=/sys/fs/cgroup/memory/$1; file=memory.limit_in_bytes; fi
  mkdir "$group" && trap 'echo $$ > "$group/../cgroup.procs"; rmdir "$group"' EXIT
  echo 2147483648 > "$group/$file" && echo $$ > "$group/cgroup.procs" || exit 77
  shift; "$@"`;

test('a real group of this host limits what is said', (t) => {
  const program = `
    const { readHostMemory } = await import(process.argv[1]);
    console.log(JSON.stringify(readHostMemory()));`;
  const url = new URL('./host-facts.ts', import.meta.url).href;
  const words = [process.execPath, '--input-type=module', '-e', program, url];
  const group = `cloudlet-test-${process.pid}`;
  const { status, stdout } = spawnSync('sh', ['-c', LIMITED, 'sh', group, ...words], { encoding: 'utf8' });
  if (status !== 0) return t.skip('no control group with a limit of memory can be made here');
  const { totalBytes, availableBytes } = JSON.parse(stdout);
  assert.equal(totalBytes, Math.min(2048 * MIB, readHostMemory().totalBytes));
  assert.ok(availableBytes < 2048 * MIB);
});
