/** What guests of tests write to their consoles. */
import type { Hypervisor } from '../compute/hypervisor.ts';
import { eventually } from './eventually.ts';

/** Waits until the guest says so itself, on its console. */
export async function booted(hypervisor: Hypervisor, vmId: string): Promise<void> {
  await eventually(async () => (await logText(hypervisor, vmId)).includes('guest is up'));
}

export async function logText(hypervisor: Hypervisor, vmId: string): Promise<string> {
  return Buffer.from(await hypervisor.consoleLog(vmId, 65_536)).toString();
}
