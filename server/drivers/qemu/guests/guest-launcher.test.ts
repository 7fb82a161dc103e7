/** A start waits for these before the processor of the guest may run. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { GuestEnd, GuestSpec } from '../../../compute/hypervisor.ts';
import { AppError, isAppError } from '../../../platform/errors.ts';
import { eventually } from '../../../testing/eventually.ts';
import { noGuestUsers } from '../../../testing/own-ground.ts';
import { buildQemuFixture, noQemu, type QemuFixture } from '../../../testing/qemu-fixture.ts';
import { isThere } from '../../host-process/process-identity.ts';
import type { QemuHypervisor } from '../qemu-hypervisor.ts';
import type { RunRecord } from './guest-folders.ts';
import type { OutboundGuard } from './guest-networks.ts';

const letOut = (spec: GuestSpec): GuestSpec => ({ ...spec, network: { ...spec.network, outbound: true } });

describe('a guest that is to be let out', {
  skip: noQemu || noGuestUsers,
}, () => {
  let fixture: QemuFixture;
  let hypervisor: QemuHypervisor;
  let answer = Promise.withResolvers<void>();
  const ends: GuestEnd[] = [];
  before(() => {
    fixture = buildQemuFixture();
    const outbound: OutboundGuard = {
      letsOut: true,
      ensure: () => answer.promise,
      close: async () => {},
      refusal: null,
    };
    hypervisor = fixture.open({ outbound });
    hypervisor.onEnd((end) => ends.push(end));
  });
  after(async () => {
    for (const { vmId } of await hypervisor.list()) await hypervisor.stop(vmId, { graceMs: 0 });
    await hypervisor.close();
    await fixture.remove();
  });
  const newSpec = () => letOut(fixture.newSpec());
  const written = (vmId: string) => {
    const path = join(fixture.deps.vmsDirectory, vmId, 'run.json');
    try {
      return JSON.parse(readFileSync(path, 'utf8')) as RunRecord;
    } catch {
      return null;
    }
  };
  /** Its process exists, and answers: only the protection of this host is not done. */
  const waiting = async (vmId: string) => {
    const { pid } = await eventually(() => written(vmId));
    const folder = join(fixture.deps.vmsDirectory, vmId, 'guest');
    await eventually(() => readdirSync(folder).includes('events.sock'));
    const until = process.cpuUsage().user + 100_000;
    while (process.cpuUsage().user < until) await new Promise(setImmediate);
    return pid;
  };

  test('gets ready meanwhile, and does not run before the rules are there', async () => {
    answer = Promise.withResolvers();
    const spec = newSpec();
    const started = hypervisor.start(spec);
    const pid = await waiting(spec.vmId);
    assert.ok(readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(spec.uuid));
    assert.equal((await hypervisor.inspect(spec.vmId)).running, false);
    assert.equal((await hypervisor.consoleLog(spec.vmId, 100)).length, 0);
    answer.resolve();
    await started;
    assert.equal(written(spec.vmId)?.pid, pid);
    assert.equal((await hypervisor.inspect(spec.vmId)).running, true);
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });

  test('is ended without having run when they cannot be had', async () => {
    answer = Promise.withResolvers();
    const spec = newSpec();
    const started = assert.rejects(hypervisor.start(spec), (error) =>
      isAppError(error, 'engine_unavailable'),
    );
    const pid = await waiting(spec.vmId);
    answer.reject(new AppError('engine_unavailable', 'no rules'));
    await started;
    assert.equal(isThere(pid), false);
    const { running } = await hypervisor.inspect(spec.vmId);
    assert.deepEqual([running, ends], [false, []]);
    assert.equal((await hypervisor.consoleLog(spec.vmId, 100)).length, 0);
  });
});
