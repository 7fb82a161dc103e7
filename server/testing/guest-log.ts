/** Output of test guests on their consoles. */
import type { Hypervisor } from '../compute/hypervisor.ts';
import { eventually } from './eventually.ts';

/** Waits until the guest prints it on its console. */
export async function booted(hypervisor: Hypervisor, vmId: string): Promise<void> {
  await eventually(async () => (await logText(hypervisor, vmId)).includes('guest is up'));
}

export async function logText(hypervisor: Hypervisor, vmId: string): Promise<string> {
  return Buffer.from(await hypervisor.consoleLog(vmId, 65_536)).toString();
}
