/** Identifies the boot of the host. */
import { readFileSync } from 'node:fs';

/** Changes with every boot of the host; empty if the kernel does not provide it. */
export function hostBootId(): string {
  return read('/proc/sys/kernel/random/boot_id').trim();
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
