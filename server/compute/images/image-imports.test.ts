import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { BACKGROUND } from '../../metadata/change.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import {
  type Compute,
  type ComputeFixture,
  type ComputeOptions,
  openComputeFixture,
} from '../../testing/compute-fixture.ts';
import { eventually } from '../../testing/eventually.ts';
import type { Hypervisor, ImportOptions } from '../hypervisor.ts';

/** Larger than the fixture's limit according to assertSpace, not by its bytes. */
const BYTES = Buffer.alloc(300_000, 7);

describe('imports of images', () => {
  let folder: string;
  let fixture: ComputeFixture;
  let compute: Compute;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cloudlet-imports-'));
    writeFileSync(join(folder, 'a'), BYTES);
    fixture = await openComputeFixture();
    compute = await fixture.open({ imageFolders: [folder] });
  });
  afterEach(async () => {
    await compute.imports.close();
    await fixture.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const add = (from = compute) => from.imports.add(BACKGROUND, { name: 'a', path: join(folder, 'a') });
  const find = async (imageId: string, from = compute) => {
    const image = (await from.images.listAll()).find(({ image_id }) => image_id === imageId);
    assert.ok(image);
    return image;
  };
  const settled = (imageId: string, from = compute) =>
    eventually(async () => {
      const image = await find(imageId, from);
      return image.state === 'importing' ? null : image;
    });
  const reopen = async (options: ComputeOptions = {}) => {
    compute = await fixture.open({ imageFolders: [folder], ...options });
  };
  /** Blocks every import until the returned function is called. */
  function hold(from = compute): () => void {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    from.scripted.script('importImage', () => held);
    return release;
  }

  test('the engine takes in one at a time, in order', async () => {
    const begun: string[] = [];
    const wrapHypervisor = (engine: Hypervisor): Hypervisor =>
      Object.assign(Object.create(engine) as Hypervisor, {
        importImage: (imageId: string, options: ImportOptions) => {
          begun.push(imageId);
          return engine.importImage(imageId, options);
        },
      });
    await reopen({ wrapHypervisor });
    const release = hold();
    const [first, second] = [await add(), await add()];
    await eventually(() => fixture.engine.stagedImages.get(second.image_id) === BYTES.length);
    assert.deepEqual(begun, [first.image_id]);
    assert.equal((await find(second.image_id)).state, 'importing');
    release();
    assert.equal((await settled(second.image_id)).state, 'ready');
    assert.deepEqual([...fixture.engine.images], [first.image_id, second.image_id]);
    assert.equal((await find(first.image_id)).size, BYTES.length);
  });

  test('slow downloads hold up nobody else, only so many go on at once, and one that waits can be deleted', async () => {
    const asked: string[] = [];
    const slow = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.write('x');
    }).listen(0, '127.0.0.1');
    await once(slow, 'listening');
    const { port } = slow.address() as AddressInfo;
    const ids: string[] = [];
    for (let at = 0; at < 6; at++) {
      ids.push(
        (await compute.imports.add(BACKGROUND, { name: 'u', url: `http://127.0.0.1:${port}/${at}` }))
          .image_id,
      );
    }
    await eventually(() => asked.length === 4);
    assert.equal((await settled((await add()).image_id)).state, 'ready');
    const upload = await compute.imports.beginUpload();
    await upload.write(BYTES);
    const uploaded = await compute.imports.finishUpload(BACKGROUND, upload, { name: 'b', sha256: undefined });
    assert.equal((await settled(uploaded.image_id)).state, 'ready');
    assert.deepEqual([...asked].sort(), ['/0', '/1', '/2', '/3']);
    await compute.imports.delete(BACKGROUND, ids[4] ?? '');
    await compute.imports.delete(BACKGROUND, ids[0] ?? '');
    await eventually(() => asked.includes('/5'));
    assert.ok(!asked.includes('/4'));
    await compute.imports.close();
    slow.closeAllConnections();
    slow.close();
  });

  test('one that waits is deleted at once, while another is under way', async () => {
    const release = hold();
    const [first, second] = [await add(), await add()];
    await compute.imports.delete(BACKGROUND, second.image_id);
    assert.equal((await compute.images.listAll()).length, 1);
    release();
    assert.equal((await settled(first.image_id)).state, 'ready');
    await compute.imports.close();
    assert.deepEqual([...fixture.engine.images], [first.image_id]);
  });

  test('a stop ends what is under way and what waits: failed, nothing left, nothing new begun', async () => {
    const release = hold();
    const [first, second] = [await add(), await add()];
    const closing = compute.imports.close();
    release();
    await closing;
    for (const { image_id } of [first, second]) {
      const { state, state_reason } = await find(image_id);
      assert.deepEqual([state, state_reason?.code], ['failed', 'shutting_down']);
    }
    assert.deepEqual(await compute.scripted.listImages(), []);
    await assert.rejects(add(), (error) => isAppError(error, 'shutting_down'));
    await assert.rejects(compute.imports.beginUpload(), (error) => isAppError(error, 'shutting_down'));
  });

  test('after a kill: unfinished ones have failed, their bytes are gone, ready ones stay', async () => {
    const ready = await add();
    await settled(ready.image_id);
    hold();
    const broken = await add();
    await eventually(() => fixture.engine.stagedImages.has(broken.image_id));
    const upload = await compute.imports.beginUpload();
    await upload.write(BYTES);
    const killed = compute;
    await reopen();
    assert.equal((await fixture.engine.stagedImages).size, 2);
    const going = await compute.imports.beginUpload();
    await compute.imports.start();
    assert.deepEqual(await compute.scripted.listImages(), [ready.image_id, going.imageId]);
    assert.equal((await find(broken.image_id)).state_reason?.code, 'shutting_down');
    assert.equal((await find(ready.image_id)).state, 'ready');
    await compute.imports.abortUpload(going);
    assert.notEqual(killed, compute);
  });

  test('killed after the engine was done and before the row says so: failed, and its file is gone', async () => {
    const wrapMetadata = (metadata: Metadata): Metadata => ({
      get: (sql, ...params) => metadata.get(sql, ...params),
      all: (sql, ...params) => metadata.all(sql, ...params),
      snapshot: metadata.snapshot.bind(metadata),
      close: () => metadata.close(),
      commit: (statements) => {
        const isEnd = statements.some(({ sql }) => /SET state = '(?:ready|failed)'/.test(sql));
        return isEnd ? new Promise(() => {}) : metadata.commit(statements);
      },
    });
    const dying = await fixture.open({ imageFolders: [folder], wrapMetadata });
    const image = await add(dying);
    await eventually(() => fixture.engine.images.has(image.image_id));
    await compute.imports.start();
    assert.equal((await find(image.image_id)).state, 'failed');
    assert.deepEqual(await compute.scripted.listImages(), []);
  });

  test('too large, or no space: failed, with nothing left', async () => {
    let freeBytes = BYTES.length - 1;
    const assertSpace = (bytes: number) => {
      freeBytes -= bytes;
      if (freeBytes < 0) throw new AppError('out_of_space', 'no space');
    };
    await reopen({ assertSpace });
    const full = await settled((await add()).image_id);
    assert.deepEqual([full.state, full.state_reason?.code], ['failed', 'out_of_space']);
    await reopen({ maxImageBytes: BYTES.length - 1 });
    const before = (await compute.images.listAll()).length;
    await assert.rejects(add(), (error) => isAppError(error, 'payload_too_large'));
    assert.equal((await compute.images.listAll()).length, before, 'nothing is begun');
    const upload = await compute.imports.beginUpload();
    await assert.rejects(upload.write(BYTES), (error) => isAppError(error, 'payload_too_large'));
    await compute.imports.abortUpload(upload);
    await reopen({ maxImageBytes: BYTES.length });
    assert.equal((await settled((await add()).image_id)).state, 'ready');
    assert.equal((await compute.scripted.listImages()).length, 1);
  });

  test('the disk runs full while the engine works: broken off', async () => {
    let isFull = false;
    const assertSpace = () => {
      if (isFull) throw new AppError('out_of_space', 'no space');
    };
    await reopen({ assertSpace });
    const release = hold();
    const image = await add();
    await eventually(() => fixture.engine.stagedImages.get(image.image_id) === BYTES.length);
    isFull = true;
    // The scripted engine checks the signal when it is released; the disk is checked every second.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    release();
    const { state, state_reason } = await settled(image.image_id);
    assert.deepEqual([state, state_reason?.code], ['failed', 'out_of_space']);
  });

  test('an image that a machine is being made of cannot go, and none is made of one that went', async () => {
    const owner = await fixture.newCall('owner');
    const request = (image: string) => ({ name: 'm', instance_type: 't2.micro', image });
    const image = await add();
    const notReady = compute.machines.create(owner, request(image.image_id));
    await assert.rejects(notReady, (error) => isAppError(error, 'image_not_ready'));
    await settled(image.image_id);
    // The image is deleted after it was checked and before the row of the machine is stored.
    compute.scripted.script('prepare', async () => {
      await compute.imports.delete(BACKGROUND, image.image_id);
    });
    const late = compute.machines.create(owner, request(image.image_id));
    await assert.rejects(late, (error) => isAppError(error, 'image_not_found'));
    assert.equal(fixture.engine.guests.size, 0);
    compute.scripted.script('prepare');

    const other = await add();
    await settled(other.image_id);
    await compute.machines.create(owner, request(other.image_id));
    await assert.rejects(compute.imports.delete(BACKGROUND, other.image_id), (error) =>
      isAppError(error, 'image_in_use'),
    );
    assert.ok(fixture.engine.images.has(other.image_id));
  });
});
