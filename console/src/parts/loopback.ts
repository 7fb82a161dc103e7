/** True for an address that only programs on the cloud's own computer can reach. */
export function isLoopback(address: string): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(address).hostname);
}
