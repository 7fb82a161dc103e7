/** True for an address that only programs on the computer of the cloud reach. */
export function isLoopback(address: string): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(address).hostname);
}
