/** Settings of the kernel's network. In many containers they may only be read. */
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs';

const QUIET = 'net.ipv6.conf.default.disable_ipv6';
export const FORWARDING = 'net.ipv4.ip_forward';
/** How to start guests' devices without IPv6. */
export const QUIET_FIX = `make /proc/sys/net writable, or start the container with --sysctl ${QUIET}=1`;

/** Whether the setting is on; a missing one is off. */
export function isOn(name: string): boolean {
  return read(name) === '1';
}

/** Turns it on, unless it is or the kernel does not know it. Throws what the kernel says. */
export function turnOn(name: string): void {
  if (read(name) !== null && !isOn(name)) writeFileSync(pathOf(name), '1');
}

/** Whether IPv6 stays enabled on new devices, because Cloudlet may not disable it. */
export function keepsIpv6(): boolean {
  return read(QUIET) !== null && !isOn(QUIET) && isReadOnly(QUIET);
}

/** How to enable it, as a hint for operators. */
export function wayToTurnOn(name: string): string {
  return isReadOnly(name)
    ? `start the container with --sysctl ${name}=1, or make /proc/sys/net writable`
    : `sysctl -w ${name}=1`;
}

function isReadOnly(name: string): boolean {
  try {
    accessSync(pathOf(name), constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

function read(name: string): string | null {
  try {
    return readFileSync(pathOf(name), 'utf8').trim();
  } catch {
    return null;
  }
}

function pathOf(name: string): string {
  return `/proc/sys/${name.replaceAll('.', '/')}`;
}
