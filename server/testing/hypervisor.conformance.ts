/**
 * Requirements for any Hypervisor driver. The test of a driver calls this with a function that creates one.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestConsole, GuestEnd, GuestSpec, Hypervisor, ImageStage } from '../compute/hypervisor.ts';
import { systemClock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { eventually } from './eventually.ts';
import { booted, logText } from './guest-log.ts';
import { testDisks, testRebuilds, testSnapshots } from './hypervisor-disks.conformance.ts';

export interface HypervisorFixture {
  /** On the same directory every time, as after a restart of Cloudlet. */
  open(): Hypervisor;
  /**
   * A new guest each time. It writes `guest is up` to its console, echoes its input, powers off at the power
   * button (unless deaf) and when `q` is typed.
   */
  newSpec(kind?: 'deaf'): GuestSpec;
  /** The size of a guest's disk as reported by the guest. */
  diskBytes(spec: GuestSpec): Promise<number>;
  /** The disk of such a guest, as the bytes of an image. */
  imageBytes(): Buffer;
  remove(): Promise<void>;
}

/** Longer than a guest needs to power off on a busy host; no test waits for all of it. */
const PATIENCE_MS = 30_000;
/** File times are as coarse as the kernel's tick, which is late on a busy host. */
const CLOCK_STEP_MS = 100;

async function consoleOf(hypervisor: Hypervisor, vmId: string): Promise<GuestConsole> {
  const opened = await hypervisor.openConsole(vmId);
  assert.ok(opened);
  return opened;
}

/** Registers the tests. */
export function testHypervisor(driver: string, build: () => Promise<HypervisorFixture>): void {
  describe(`${driver} as Hypervisor`, () => {
    let fixture: HypervisorFixture;
    let hypervisor: Hypervisor;
    const ends: GuestEnd[] = [];
    before(async () => {
      fixture = await build();
      hypervisor = fixture.open();
      hypervisor.onEnd((end) => ends.push(end));
    });
    after(async () => {
      for (const { vmId } of await hypervisor.list()) {
        await hypervisor.stop(vmId, { graceMs: 0 });
        await hypervisor.discard(vmId);
      }
      await hypervisor.close();
      await fixture.remove();
    });
    testLife({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
    testUse({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
    testDisks({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
    testSnapshots({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
    testRebuilds({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
    testRestart({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
    testUnwatched({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
    testImages({ hypervisor: () => hypervisor, fixture: () => fixture, ends });
  });
}

export interface Subject {
  readonly hypervisor: () => Hypervisor;
  readonly fixture: () => HypervisorFixture;
  readonly ends: readonly GuestEnd[];
}

function testLife({ hypervisor, fixture, ends }: Subject): void {
  test('a guest is prepared, started, seen, stopped, started again and discarded', async () => {
    const spec = fixture().newSpec();
    const { vmId } = spec;
    const gone = { vmId, running: false, handle: null, runningSince: null, end: null };
    assert.deepEqual(await hypervisor().inspect(vmId), gone);
    await hypervisor().prepare(spec);
    await hypervisor().prepare(spec);
    assert.deepEqual(await hypervisor().inspect(vmId), gone);
    const began = systemClock.now();
    const { handle, accel } = await hypervisor().start(spec);
    assert.notEqual(accel, '');
    const fact = await hypervisor().inspect(vmId);
    assert.equal(fact.running, true);
    assert.equal(fact.handle, handle);
    assert.ok((fact.runningSince ?? 0) >= began && (fact.runningSince ?? 0) <= systemClock.now());
    assert.deepEqual(
      (await hypervisor().list()).filter((one) => one.vmId === vmId),
      [fact],
    );
    await booted(hypervisor(), vmId);
    assert.equal(fact.end, null);
    assert.equal(await hypervisor().stop(vmId, { graceMs: PATIENCE_MS }), 'guest');
    const { end, ...rest } = await hypervisor().inspect(vmId);
    assert.deepEqual({ ...rest, end: null }, gone);
    assert.equal(end?.handle, handle);
    assert.ok((end.at ?? 0) >= (fact.runningSince ?? 0) && (end.at ?? 0) <= systemClock.now());
    assert.equal(await hypervisor().stop(vmId, { graceMs: PATIENCE_MS }), 'was_stopped');
    assert.notEqual((await hypervisor().start(spec)).handle, handle);
    assert.equal(await hypervisor().stop(vmId, { graceMs: 0 }), 'quit');
    await hypervisor().discard(vmId);
    await hypervisor().discard(vmId);
    assert.ok((await hypervisor().list()).every((one) => one.vmId !== vmId));
    assert.deepEqual(
      ends.filter((end) => end.vmId === vmId),
      [],
      'the end of a guest that was told to stop is no news',
    );
  });

  test('two starts at once give one guest, and one more changes nothing', async () => {
    const spec = fixture().newSpec();
    const [a, b] = await Promise.all([hypervisor().start(spec), hypervisor().start(spec)]);
    assert.deepEqual(a, b);
    const fact = await hypervisor().inspect(spec.vmId);
    assert.deepEqual(await hypervisor().start(spec), a);
    assert.deepEqual(await hypervisor().inspect(spec.vmId), fact);
    await assert.rejects(hypervisor().discard(spec.vmId), 'a running guest keeps its disk');
    await hypervisor().stop(spec.vmId, { graceMs: 0 });
  });

  test('a guest that powers itself off is reported, once, with the run it was', async () => {
    const spec = fixture().newSpec();
    const { handle } = await hypervisor().start(spec);
    await booted(hypervisor(), spec.vmId);
    const seen = await consoleOf(hypervisor(), spec.vmId);
    const closed = new Promise<void>((resolve) => seen.onClose(resolve));
    await seen.write(Buffer.from('q'));
    const end = await eventually(() => ends.find(({ vmId }) => vmId === spec.vmId));
    assert.equal(end.cause, 'guest_shutdown');
    assert.equal(end.handle, handle);
    assert.equal((await hypervisor().inspect(spec.vmId)).running, false);
    await closed;
    assert.equal(ends.filter(({ vmId }) => vmId === spec.vmId).length, 1);
    assert.equal(await hypervisor().sample(spec.vmId), null);
    assert.equal(await hypervisor().openConsole(spec.vmId), null);
  });

  testDeaf(hypervisor, fixture);
}

function testDeaf(hypervisor: () => Hypervisor, fixture: () => HypervisorFixture): void {
  test('a guest that does not listen is stopped all the same', async () => {
    const spec = fixture().newSpec('deaf');
    await hypervisor().start(spec);
    await booted(hypervisor(), spec.vmId);
    assert.equal(await hypervisor().stop(spec.vmId, { graceMs: 3500 }), 'quit');
  });

  test('an abort ends the grace of a guest that does not listen', async () => {
    const spec = fixture().newSpec('deaf');
    await hypervisor().start(spec);
    await booted(hypervisor(), spec.vmId);
    const abort = new AbortController();
    const stopping = hypervisor().stop(spec.vmId, { graceMs: 300_000, signal: abort.signal });
    await sleep(500);
    assert.equal((await hypervisor().inspect(spec.vmId)).running, true);
    abort.abort();
    assert.equal(await stopping, 'quit');
  });
}

function testUse({ hypervisor, fixture }: Subject): void {
  test('the console goes both ways, and its log stays over a stop', async () => {
    const spec = fixture().newSpec();
    await hypervisor().start(spec);
    await booted(hypervisor(), spec.vmId);
    const seen = await consoleOf(hypervisor(), spec.vmId);
    let text = '';
    seen.onData((bytes) => {
      text += Buffer.from(bytes).toString();
    });
    await seen.write(Buffer.from('hello'));
    await eventually(() => text.includes('hello'));
    seen.close();
    const again = await consoleOf(hypervisor(), spec.vmId);
    await again.write(Buffer.from('!'));
    await eventually(async () => (await logText(hypervisor(), spec.vmId)).includes('hello!'));
    await hypervisor().stop(spec.vmId, { graceMs: 0 });
    assert.match(await logText(hypervisor(), spec.vmId), /guest is up[\s\S]*hello!/);
    assert.equal((await hypervisor().consoleLog(spec.vmId, 3)).length, 3);
  });

  test('readings are true or null, and counters grow', async () => {
    const spec = fixture().newSpec();
    await hypervisor().start(spec);
    await booted(hypervisor(), spec.vmId);
    const first = await hypervisor().sample(spec.vmId);
    assert.ok(first);
    assert.ok((first.diskReadBytes ?? 512) >= 512, 'it booted from its disk');
    assert.ok((first.residentBytes ?? 1) > 0);
    // This guest has no balloon driver.
    assert.equal(first.memoryUsedBytes, null);
    const later = await eventually(async () => {
      const sample = await hypervisor().sample(spec.vmId);
      return sample !== null && (sample.cpuMs ?? 1) > (first.cpuMs ?? 0) ? sample : null;
    });
    assert.ok(later.at >= first.at);
    await hypervisor().stop(spec.vmId, { graceMs: 0 });
  });

  test('every guest that runs has its own endpoints on this host', async () => {
    const specs = [fixture().newSpec(), fixture().newSpec()];
    const endpoints = new Set<string>();
    for (const spec of specs) {
      await hypervisor().start(spec);
      for (const port of spec.network.ports) {
        const endpoint = hypervisor().endpoint(spec, port);
        if (endpoint !== null) endpoints.add(`${endpoint.host}:${endpoint.port}`);
        assert.deepEqual(hypervisor().endpoint(spec, port), endpoint);
      }
      assert.equal(hypervisor().endpoint(spec, 65_535), null, 'a port that was not asked for');
    }
    assert.equal(
      endpoints.size,
      specs.reduce((sum, { network }) => sum + network.ports.length, 0),
    );
    for (const { vmId } of specs) await hypervisor().stop(vmId, { graceMs: 0 });
  });

  test('a guest nobody knows is stopped, and has nothing', async () => {
    const vmId = newId('vm', systemClock);
    assert.equal((await hypervisor().inspect(vmId)).running, false);
    assert.equal(await hypervisor().stop(vmId, { graceMs: 1000 }), 'was_stopped');
    assert.equal(await hypervisor().sample(vmId), null);
    assert.equal(await hypervisor().openConsole(vmId), null);
    assert.equal((await hypervisor().consoleLog(vmId, 100)).length, 0);
    await hypervisor().discard(vmId);
  });
}

function testRestart({ hypervisor, fixture }: Subject): void {
  test('a new hypervisor over the same directory finds the guest, watches it and can stop it', async () => {
    if (!hypervisor().capabilities.survivesRestart) return;
    const spec = fixture().newSpec();
    const first = fixture().open();
    const { handle } = await first.start(spec);
    await booted(first, spec.vmId);
    await first.close();
    const second = fixture().open();
    const ends: GuestEnd[] = [];
    second.onEnd((end) => ends.push(end));
    const facts = await second.list();
    const fact = facts.find(({ vmId }) => vmId === spec.vmId);
    assert.equal(fact?.running, true);
    assert.equal(fact?.handle, handle);
    await second.adopt(facts);
    assert.equal((await second.start(spec)).handle, handle);
    const seen = await consoleOf(second, spec.vmId);
    await seen.write(Buffer.from('q'));
    const end = await eventually(() => ends.find(({ vmId }) => vmId === spec.vmId));
    assert.deepEqual([end.cause, end.handle], ['guest_shutdown', handle]);
    await second.start(spec);
    await second.close();
    const third = fixture().open();
    assert.equal(await third.stop(spec.vmId, { graceMs: 0 }), 'quit');
    assert.equal((await third.inspect(spec.vmId)).running, false);
    await third.close();
  });
}

function testUnwatched({ fixture }: Subject): void {
  test('how and when a guest ended is known also when nobody watched', async () => {
    const spec = fixture().newSpec();
    const first = fixture().open();
    const isDoneHere = !first.capabilities.survivesRestart;
    if (isDoneHere) return first.close();
    const { handle } = await first.start(spec);
    await booted(first, spec.vmId);
    const seen = await consoleOf(first, spec.vmId);
    // It may be off before the first connection has closed.
    const began = systemClock.now() - CLOCK_STEP_MS;
    await seen.write(Buffer.from('q'));
    await first.close();
    const second = fixture().open();
    const fact = await eventually(async () => {
      const now = await second.inspect(spec.vmId);
      return now.running ? null : now;
    });
    const ended = await eventually(() => fact.end ?? second.inspect(spec.vmId).then(({ end }) => end));
    const gone = systemClock.now();
    assert.deepEqual([ended.cause, ended.handle], ['guest_shutdown', handle]);
    assert.ok((ended.at ?? 0) >= began && (ended.at ?? 0) <= gone, `${began} ${ended.at} ${gone}`);
    await second.start(spec);
    assert.equal((await second.inspect(spec.vmId)).end, null);
    await second.stop(spec.vmId, { graceMs: 0 });
    await second.close();
  });
}

const MAX_IMAGE_BYTES = 2 ** 30;
const importing = { maxVirtualBytes: MAX_IMAGE_BYTES, signal: new AbortController().signal };

async function stage(hypervisor: Hypervisor, imageId: string, bytes: Buffer): Promise<void> {
  const staged = await hypervisor.stageImage(imageId);
  const half = Math.floor(bytes.length / 2);
  await staged.write(bytes.subarray(0, half));
  await staged.write(bytes.subarray(half));
  await staged.close();
}

async function keptBytes(stage: ImageStage): Promise<number> {
  let bytes = 0;
  for await (const piece of stage.kept()) bytes += piece.length;
  return bytes;
}

function testImages({ hypervisor, fixture }: Subject): void {
  test('an image is taken in and started from, and its guest outlives it', async () => {
    const bytes = fixture().imageBytes();
    const imageId = newId('img', systemClock);
    await stage(hypervisor(), imageId, Buffer.from('what was staged before is gone'));
    await stage(hypervisor(), imageId, bytes);
    assert.ok((await hypervisor().listImages()).includes(imageId));
    const found = await hypervisor().importImage(imageId, importing);
    assert.deepEqual([found.format, found.virtualBytes], ['raw', bytes.length]);
    assert.ok(found.sizeBytes > 0);
    const image = { imageId, boot: 'disk', format: 'qcow2' } as const;
    const specs = [fixture().newSpec(), fixture().newSpec()].map((spec) => ({ ...spec, image }));
    for (const spec of specs) {
      await hypervisor().start(spec);
      await booted(hypervisor(), spec.vmId);
      await hypervisor().stop(spec.vmId, { graceMs: 0 });
    }
    await hypervisor().discardImage(imageId);
    await hypervisor().discardImage(imageId);
    assert.ok(!(await hypervisor().listImages()).includes(imageId));
    const [first] = specs;
    assert.ok(first);
    await hypervisor().start(first);
    await hypervisor().stop(first.vmId, { graceMs: 0 });
  });

  test('bytes that were staged are gone on with when asked to, else they are gone', async () => {
    const bytes = fixture().imageBytes();
    const imageId = newId('img', systemClock);
    const half = Math.floor(bytes.length / 2);
    const first = await hypervisor().stageImage(imageId, { resume: true });
    assert.equal(await keptBytes(first), 0);
    await first.write(bytes.subarray(0, half));
    await first.close();
    const second = await hypervisor().stageImage(imageId, { resume: true });
    assert.equal(await keptBytes(second), half);
    await second.write(bytes.subarray(half));
    await second.close();
    const found = await hypervisor().importImage(imageId, importing);
    assert.deepEqual([found.format, found.virtualBytes], ['raw', bytes.length]);
    await hypervisor().discardImage(imageId);

    const third = await hypervisor().stageImage(imageId);
    await third.write(bytes);
    await third.close();
    const fourth = await hypervisor().stageImage(imageId);
    assert.equal(await keptBytes(fourth), 0);
    await fourth.close();
    await hypervisor().discardImage(imageId);
  });

  test('an image that is none, or too large, is refused and leaves nothing', async () => {
    const bytes = fixture().imageBytes();
    const refused = [
      { bytes: Buffer.from('no image'), maxVirtualBytes: MAX_IMAGE_BYTES },
      { bytes: Buffer.alloc(0), maxVirtualBytes: MAX_IMAGE_BYTES },
      { bytes, maxVirtualBytes: bytes.length - 1 },
    ];
    for (const { bytes, maxVirtualBytes } of refused) {
      const imageId = newId('img', systemClock);
      await stage(hypervisor(), imageId, bytes);
      await assert.rejects(hypervisor().importImage(imageId, { ...importing, maxVirtualBytes }), (error) =>
        isAppError(error, 'invalid_request'),
      );
      assert.ok(!(await hypervisor().listImages()).includes(imageId));
    }
  });

  test('an import that nobody waits for any more ends, and leaves nothing', async () => {
    const imageId = newId('img', systemClock);
    await stage(hypervisor(), imageId, fixture().imageBytes());
    const reason = new Error('enough');
    const options = { ...importing, signal: AbortSignal.abort(reason) };
    await assert.rejects(hypervisor().importImage(imageId, options), reason);
    assert.ok(!(await hypervisor().listImages()).includes(imageId));
  });
}
