import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { systemClock } from '../../../platform/clock.ts';
import { isAppError } from '../../../platform/errors.ts';
import { newId, randomSecret } from '../../../platform/ids.ts';
import { eventually } from '../../../testing/eventually.ts';
import { noGuestUsers, noUsers } from '../../../testing/own-ground.ts';
import { noQemu } from '../../../testing/qemu-fixture.ts';
import { testGuestDisk } from '../../../testing/test-guest.ts';
import { findIsolation } from '../../host-process/isolation.ts';
import { ImageLibrary, type ImageLibraryDeps } from './image-library.ts';

const GIB = 2 ** 30;
/** Not used by any cloud that may run here. */
const UID = 2_100_000_000;

describe('ImageLibrary', { skip: noQemu }, () => {
  let root: string;
  let imageId: string;
  before(() => {
    root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-library-'));
    // Other users cannot access anything in here.
    fs.chmodSync(root, 0o700);
  });
  beforeEach(() => {
    imageId = newId('img', systemClock);
  });
  after(() => fs.rmSync(root, { recursive: true, force: true }));

  const directory = () => join(root, 'images');
  const library = (changes: Partial<ImageLibraryDeps> = {}) =>
    new ImageLibrary({
      directory: directory(),
      clock: systemClock,
      uid: noUsers === null ? UID : null,
      program: async () => '/usr/bin/qemu-img',
      ...changes,
    });
  const options = { maxVirtualBytes: 4 * GIB, signal: new AbortController().signal };
  async function stage(bytes: Buffer, images = library()): Promise<ImageLibrary> {
    const staged = await images.stage(imageId);
    await staged.write(bytes);
    await staged.close();
    return images;
  }
  /** Stands in for a converter that was taken over by its input. */
  function program(script: string): Partial<ImageLibraryDeps> {
    const path = join(tmpdir(), `cloudlet-converter-${process.pid}-${imageId}`);
    fs.writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return { program: async () => path };
  }
  const removeProgram = () =>
    fs.rmSync(join(tmpdir(), `cloudlet-converter-${process.pid}-${imageId}`), { force: true });
  const refused = (words: RegExp) => (error: unknown) =>
    isAppError(error, 'invalid_request') && words.test(error.message);
  const left = () => fs.readdirSync(directory()).filter((name) => name.includes(imageId));

  test('what comes out is ours, read only, self-contained and the same disk', async () => {
    const images = await stage(testGuestDisk());
    const { sizeBytes } = await images.import(imageId, options);
    assert.deepEqual(left(), [`${imageId}.qcow2`]);
    const path = join(directory(), `${imageId}.qcow2`);
    const stat = fs.statSync(path);
    assert.deepEqual([stat.mode & 0o777, stat.uid, stat.size], [0o444, process.getuid?.(), sizeBytes]);
    const about = JSON.parse(execFileSync('qemu-img', ['info', '--output=json', path], { encoding: 'utf8' }));
    assert.equal(about['backing-filename'], undefined);
    fs.writeFileSync(join(root, 'source.raw'), testGuestDisk());
    execFileSync('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', join(root, 'source.raw'), path]);
  });

  test('the converter has no powers, nothing of our environment, and limits', async () => {
    // It finally fails, with one line about its own rights.
    const script = `exec > words; grep -E '^(Uid|CapEff|NoNewPrivs)' /proc/self/status
      env | cut -d= -f1 | sort; ulimit -d; ulimit -t; ulimit -c
      grep -c : /proc/net/dev; cat /proc/net/unix | wc -l
      tr -s '\\t\\n' '  ' < words >&2; exit 1`;
    const images = await stage(testGuestDisk(), library(program(script)));
    // Some hosts do not let ordinary users create namespaces.
    const networks = (await findIsolation(noUsers === null)).hasNoNetwork ? '1 1' : '\\d+ \\d+';
    const words = new RegExp(`NoNewPrivs: 1 PWD 2097152 3600 0 ${networks} ?$`);
    const user = new RegExp(`Uid: ${UID} ${UID} ${UID} ${UID} CapEff: 0+ NoNewPrivs: 1 `);
    await assert.rejects(images.import(imageId, options), (error) => {
      assert.ok(refused(words)(error), String(error));
      return noUsers !== null || refused(user)(error);
    });
    removeProgram();
  });

  test('a converter that takes too much time, processor or disk is ended', async () => {
    const started = await stage(
      testGuestDisk(),
      library({ ...program('while :; do :; done'), limits: { cpuSeconds: 1 } }),
    );
    await assert.rejects(started.import(imageId, options), refused(/exceeded a limit/));
    const slow = await stage(testGuestDisk(), library({ ...program('sleep 60'), limits: { totalMs: 200 } }));
    await assert.rejects(slow.import(imageId, options), refused(/took too long/));
    const wide = await stage(
      testGuestDisk(),
      library(
        program(
          'trap "" XFSZ; dd if=/dev/zero of=disk.qcow2 bs=1M seek=2000 count=1 2>/dev/null || { echo big >&2; exit 1; }',
        ),
      ),
    );
    await assert.rejects(wide.import(imageId, options), refused(/big/));
    removeProgram();
    assert.deepEqual(left(), []);
  });

  test('a result that is a link, of someone else, or no plain image is not kept', async () => {
    fs.writeFileSync(join(root, 'secret'), 'secret');
    fs.mkdirSync(directory(), { recursive: true });
    const scripts = [
      `ln -s ${join(root, 'secret')} disk.qcow2`,
      'qemu-img create -q -f qcow2 other 1M; ln other disk.qcow2',
      'qemu-img create -q -f qcow2 other 1M; ln -s other disk.qcow2',
      'mkdir disk.qcow2',
      'mkfifo disk.qcow2',
      "perl -e 'for (1 .. 1500) { mkdir q(folder); chdir q(folder) or die }'",
      'cp source disk.qcow2',
      'qemu-img create -q -f qcow2 -b source -F raw disk.qcow2',
      'true',
    ];
    for (const script of scripts) {
      const images = await stage(testGuestDisk(), library(program(script)));
      await assert.rejects(images.import(imageId, options), (error) => isAppError(error), script);
      removeProgram();
      assert.deepEqual(left(), [], script);
    }
    assert.equal(fs.readFileSync(join(root, 'secret'), 'utf8'), 'secret');
  });

  test('bytes that a converter could have written to are not gone on with', {
    skip: noGuestUsers,
  }, async () => {
    const images = library();
    for (const one of ['', 'source']) {
      await stage(testGuestDisk(), images);
      fs.chownSync(join(directory(), `.import-${imageId}`, one), UID, UID);
      const staged = await images.stage(imageId, { resume: true });
      for await (const piece of staged.kept()) assert.equal(piece.length, 0);
      await staged.close();
    }
    await images.discard(imageId);
  });

  test('an abort ends the converter and what it left behind', {
    skip: noGuestUsers,
  }, async () => {
    const mark = String(randomSecret(3).readUIntBE(0, 3) + 10_000);
    const images = await stage(
      testGuestDisk(),
      library(program(`(setsid sleep ${mark} &) ; touch begun; sleep ${mark}`)),
    );
    const controller = new AbortController();
    const running = images.import(imageId, { ...options, signal: controller.signal });
    const begun = join(directory(), `.import-${imageId}`, 'begun');
    await eventually(() => fs.existsSync(begun));
    const sleepers = () =>
      fs.readdirSync('/proc').filter((name) => {
        try {
          return (
            /^\d+$/.test(name) && fs.readFileSync(`/proc/${name}/cmdline`, 'utf8') === `sleep\0${mark}\0`
          );
        } catch {
          return false;
        }
      });
    const reason = new Error('enough');
    controller.abort(reason);
    await assert.rejects(running, reason);
    removeProgram();
    await eventually(() => sleepers().length === 0);
    assert.deepEqual(left(), []);
  });

  test('without the program nothing is begun, and the fix is named', async () => {
    await assert.rejects(
      library({ program: async () => null }).stage(imageId),
      (error) => isAppError(error, 'engine_unavailable') && /apt-get install/.test(error.hint ?? ''),
    );
    await assert.rejects(library().stage('../x'), /not the id/);
  });
});
