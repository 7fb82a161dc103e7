/** Whether others on the network could read what users send. */
import type { Config } from '../config/config.ts';
import { isLoopback } from '../http/host-check.ts';

export const EXPOSED =
  'other machines reach these ports, and nothing encrypts the passwords and keys they send';
export const EXPOSED_FIX =
  'put a proxy with TLS in front (deploy/Caddyfile, deploy/nginx.conf), and set CLOUDLET_PUBLIC_URL and ' +
  'CLOUDLET_DATA_URL to its https:// addresses';

/** `address`: what the ports are bound to. */
export function isExposed({ publicUrl, dataUrl }: Config, address: string): boolean {
  return !isLoopback(address) && !(isPrivate(publicUrl) && isPrivate(dataUrl));
}

/** Reached by TLS, or from this machine alone, as where a container's ports are published on loopback. */
function isPrivate(url: string): boolean {
  if (url === '') return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}
