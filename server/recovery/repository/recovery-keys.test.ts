import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { RecoveryKeys, type RecoveryKeysDeps } from './recovery-keys.ts';
import { createRepository, findRepository } from './repository-head.ts';

/**
 * A target that shows its repository to nobody until `readers` have looked for one: all of them create one.
 */
class Crowded extends DirectoryTarget {
  static #waiting: (() => void)[] = [];

  override async get(name: string): Promise<Buffer | undefined> {
    const found = await super.get(name);
    if (found !== undefined || name !== 'repository.json') return found;
    const { promise, resolve } = Promise.withResolvers<void>();
    if (Crowded.#waiting.push(resolve) === 2) for (const go of Crowded.#waiting.splice(0)) go();
    await promise;
    return undefined;
  }
}

/** Two points of one cloud have the same secrets. */
function cloud(directory: string, secrets = new Map<string, Buffer>()) {
  const deps = {
    secrets: {
      get: async (name: string) => {
        secrets.set(name, secrets.get(name) ?? randomSecret(32));
        return secrets.get(name) as Buffer;
      },
      forget: async () => {},
    },
    target: new Crowded(directory),
    store: { newestSound: async () => undefined },
  };
  return { keys: new RecoveryKeys(deps as unknown as RecoveryKeysDeps), secrets };
}

test('of two that begin a repository at once, one creates it and the other finds it', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-keys-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const one = cloud(directory);
  const copy = cloud(directory, one.secrets);
  const [first, second] = await Promise.all([one.keys.open(), copy.keys.open()]);
  assert.equal(first.id, second.id);
});

test('another cloud that comes second is told whose target it is', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-keys-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const opened = await Promise.allSettled(
    [cloud(directory), cloud(directory)].map(({ keys }) => keys.open()),
  );
  const refused = opened.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.equal(refused.length, 1);
  assert.ok(isAppError(refused[0], 'target_in_use'), String(refused[0]));
  assert.match(refused[0].message, /contains the recovery points of another cloud$/);
  assert.match(String(refused[0].hint), /its own target/);
  await assert.rejects(cloud(directory).keys.open(), { code: 'target_in_use' });
});

/** Each read of its repository returns the check value with another character changed, three times. */
class Hurt extends DirectoryTarget {
  #reads = 0;

  override async get(name: string): Promise<Buffer | undefined> {
    const found = await super.get(name);
    if (found === undefined || name !== 'repository.json') return found;
    if (++this.#reads > 3) return found;
    const at = found.indexOf('"key_check": "') + 13 + this.#reads;
    const hurt = Buffer.from(found);
    hurt.writeUInt8(found.readUInt8(at) === 0x41 ? 0x42 : 0x41, at);
    return hurt;
  }
}

test('a read that is hurt on its way does not make a repository another cloud’s', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-keys-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const target = new Hurt(directory);
  const key = randomSecret(32);
  const made = await createRepository(target, { key, recoveryKey: randomSecret(32) });
  assert.equal((await findRepository(target, key))?.repositoryId, made?.repositoryId);
});
