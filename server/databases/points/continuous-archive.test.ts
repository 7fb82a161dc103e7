/** The order of turns: servers of many accounts, one of which writes all the time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ContinuousArchive } from './continuous-archive.ts';

const MIB = 2n ** 20n;

/** A server whose log is this much longer at each check. */
function newServer(accountId: number, bytesPerTick: bigint) {
  let line: string | null = null;
  let to = 0n;
  let released = 0n;
  const state = async () => ({ line, from: released, to, at: 0 });
  return {
    accountId,
    state: async () => {
      to += bytesPerTick;
      return state();
    },
    begin: async (next: string) => {
      line = next;
      return { ...(await state()), from: to };
    },
    read: async (from: bigint, end: bigint) => ({ length: Number(end - from) }),
    release: async (position: bigint) => {
      released = position;
    },
  };
}

test('a server that writes all the time does not keep the others from their base copies', async () => {
  const servers = [1, 2, 3].map((id) => newServer(id, 1n));
  // The last one is checked first.
  const all = [...servers, newServer(4, 600n * MIB)];
  const copied: string[] = [];
  let now = 1;
  // A copy ends at the next check.
  let nextLook = Promise.withResolvers<void>();
  const logs = {
    running: () => all,
    using: (_: number, work: () => Promise<void>) => work(),
    onSleep: () => {},
    accounts: () => new Map(all.map(({ accountId }) => [accountId, 1])),
  };
  const archive = new ContinuousArchive({
    engines: { all: () => [{ name: 'postgresql', serverLogs: logs }] } as never,
    clock: { now: () => now, uptime: () => now },
    onError: assert.fail,
    continuous: {
      everyMs: 1,
      keepMs: 1,
      alarms: { raise: assert.fail, clear: () => {} },
      store: {
        open: async () => ({ lines: async () => [], servers: async () => [], putPart: async () => {} }),
        putBase: async (_: unknown, { server }: { server: string }) => {
          copied.push(server);
          await nextLook.promise;
          return { from: 0n, at: now };
        },
        trim: async () => {},
        useless: async () => new Set(),
      } as never,
    },
  });
  for (; now <= 16; now++) {
    await archive.tick();
    nextLook.resolve();
    nextLook = Promise.withResolvers<void>();
    await new Promise(setImmediate);
  }
  const firsts = [...new Set(copied)].map((key) => copied.indexOf(key));
  assert.deepEqual(firsts, [0, 1, 2, 3], `copies were made of ${copied.join(', ')}`);
  assert.ok(copied.filter((key) => key === 'postgresql-4').length > 2, 'the busy one has its turns, too');
  nextLook.resolve();
  await archive.close();
});
