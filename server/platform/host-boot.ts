/** Which boot of the host this is. */
import { readFileSync } from 'node:fs';

/** Another text after every boot of the host; empty where the kernel does not tell. */
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
