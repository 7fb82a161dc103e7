/** Variables that Kubernetes (and Docker's old links) put into a container for each Service. */

const PROTOCOL = '(?:TCP|UDP|SCTP)';
/** What their names end with; no setting of ours does. */
const NAMES = new RegExp(`_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\\d+_${PROTOCOL}(?:_[A-Z]+)?)$`);
/** `<SERVICE>_PORT`, which may be the name of a setting: told by what it holds. */
const ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/**
 * Whether a variable is one of theirs: a Service named `cloudlet` makes `CLOUDLET_PORT=tcp://10.96.0.7:8080`
 * and others with the same beginning.
 */
export function isServiceLink(name: string, value: string | undefined): boolean {
  return NAMES.test(name) || (name.endsWith('_PORT') && ADDRESS.test(value ?? ''));
}
