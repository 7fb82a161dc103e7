/** Identifies the boot of the host. */
import { readFileSync } from 'node:fs';

/** Differs after every boot of the host; empty if the kernel does not tell. */
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
