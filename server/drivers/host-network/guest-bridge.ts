/** A bridge for all guests of a cloud, with a tap device for each. The kernel holds the state. */
import { AppError } from '../../platform/errors.ts';
import { type BridgeGuest, bridgeRules } from './bridge-rules.ts';
import type { CloudClaim } from './cloud-claim.ts';
import { HostToolError, ip, nft } from './host-tool.ts';
import { FORWARDING, isOn, QUIET_FIX, turnOn, wayToTurnOn } from './kernel-settings.ts';
import { INSTALL_NFT } from './outbound-guard.ts';
import { routableResolvers } from './resolvers.ts';

export interface GuestBridgeDeps {
  /** First of the user ids of this cloud's guests: device names are derived from it. */
  readonly uidBase: number;
  /** The guests' network, `10.80.0.0/16`. Its first address is this host's. */
  readonly network: string;
  /** Whether guests may open outbound connections, if enabled for them. */
  readonly outbound: boolean;
  readonly allowPrivate: boolean;
  readonly claim: CloudClaim;
}

/** A guest, by the user its process runs as. */
export type Plugged = Omit<BridgeGuest, 'device'> & { readonly uid: number };

/** Network configuration of the guest. */
export interface StaticNetwork {
  /** With prefix length: `10.80.0.2/16`. */
  readonly address: string;
  readonly gateway: string;
  readonly resolvers: readonly string[];
}

const CLOSED = 'virtual machines cannot be attached to the bridge';
const USE_LOOPBACK = 'set CLOUDLET_VM_NETWORK=loopback';
/** A guest's device: MAC, address, whether it may go out, ports. The kernel keeps 255 characters. */
const ALIAS = /^((?:[0-9a-f]{2}:){5}[0-9a-f]{2}) (\d+\.\d+\.\d+\.\d+) (out|in) ([\d,]+)$/;

export class GuestBridge {
  readonly #deps: GuestBridgeDeps;
  readonly #name: string;
  #queue: Promise<unknown> = Promise.resolve();
  #refusal: AppError | null = null;

  constructor(deps: GuestBridgeDeps) {
    this.#deps = deps;
    this.#name = bridgeOf(deps.uidBase);
  }

  /** This host's own address among its guests. */
  get gateway(): string {
    return firstAddress(this.#deps.network).gateway;
  }

  /** Error of the last change; null: none. */
  get refusal(): AppError | null {
    return this.#refusal;
  }

  /** For a guest with that address; null: the address is not of this network, or not a guest's. */
  networkOf(address: string): StaticNetwork | null {
    const { gateway, prefix } = firstAddress(this.#deps.network);
    const size = 2 ** (32 - prefix);
    const isInside = Math.floor(toNumber(address) / size) === Math.floor(toNumber(gateway) / size);
    if (!isInside || address === gateway) return null;
    const resolvers = this.#resolvers();
    return { address: `${address}/${prefix}`, gateway, resolvers };
  }

  /** Creates the guest's device, unattached, and resolves with its name. Throws `engine_unavailable`. */
  plug(guest: Plugged): Promise<string> {
    return this.#change(async () => {
      const { uid, mac, address, outbound, ports } = guest;
      if (outbound && this.#deps.outbound) assertForwarding();
      await this.#makeBridge();
      const device = deviceOf(uid);
      await this.#remove(device);
      // Root's: the guest's process is handed its descriptor.
      await ip(['tuntap', 'add', 'dev', device, 'mode', 'tap', 'user', '0']);
      quietIpv6(device);
      const direction = outbound && this.#deps.outbound ? 'out' : 'in';
      await ip(['link', 'set', 'dev', device, 'alias', `${mac} ${address} ${direction} ${ports.join(',')}`]);
      await ip(['link', 'set', 'dev', device, 'master', this.#name]);
      await ip(['link', 'set', 'dev', device, 'type', 'bridge_slave', 'isolated', 'on']);
      await this.#placeRules();
      // Last: without rules, the guest must not have a network.
      await ip(['link', 'set', 'dev', device, 'up']);
      return device;
    });
  }

  /** Removes the device; no error if missing. */
  unplug(uid: number): Promise<void> {
    return this.#change(async () => {
      if (await this.#remove(deviceOf(uid))) await this.#placeRules();
    });
  }

  /** Restores the rules for the attached guests. */
  ensure(): Promise<void> {
    return this.#change(async () => {
      await this.#makeBridge();
      await this.#placeRules();
    });
  }

  /** One change at a time: the rules cover all devices. */
  #change<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(async () => {
      try {
        const result = await work();
        this.#refusal = null;
        return result;
      } catch (error) {
        this.#refusal = asRefusal(error);
        throw this.#refusal;
      }
    });
    this.#queue = done.catch(() => undefined);
    return done;
  }

  async #makeBridge(): Promise<void> {
    const { gateway, prefix } = firstAddress(this.#deps.network);
    if (!(await exists(this.#name))) await ip(['link', 'add', 'dev', this.#name, 'type', 'bridge']);
    quietIpv6(this.#name);
    await ip(['address', 'replace', `${gateway}/${prefix}`, 'dev', this.#name]);
    await ip(['link', 'set', 'dev', this.#name, 'up']);
  }

  async #remove(device: string): Promise<boolean> {
    if (!(await exists(device))) return false;
    await ip(['link', 'delete', 'dev', device]);
    return true;
  }

  async #placeRules(): Promise<void> {
    const { allowPrivate, claim } = this.#deps;
    const comment = (await claim.hold()) ? claim.comment : null;
    const guests = await this.#plugged();
    const resolvers = this.#resolvers();
    await nft(bridgeRules({ bridge: this.#name, guests, resolvers, allowPrivate, comment }));
  }

  async #plugged(): Promise<BridgeGuest[]> {
    const links: unknown = JSON.parse((await ip(['-j', 'link', 'show', 'master', this.#name])) || '[]');
    return (links as { ifname?: unknown; ifalias?: unknown }[]).flatMap(({ ifname, ifalias }) => {
      const [, mac, address, direction, ports] = ALIAS.exec(String(ifalias)) ?? [];
      if (!mac || !address || !ports || !/^clt\d+$/.test(String(ifname))) return [];
      // When the operator disables outbound connections, running guests lose them too.
      const outbound = direction === 'out' && this.#deps.outbound;
      const about = { mac, address, outbound, ports: ports.split(',').map(Number) };
      return [{ device: String(ifname), ...about }];
    });
  }

  #resolvers(): string[] {
    // A guest cannot reach a name server on this host's loopback.
    return routableResolvers();
  }
}

/** The name of the bridge of the cloud with that first user id. */
export function bridgeOf(uidBase: number): string {
  return `clbr${uidBase}`;
}

function deviceOf(uid: number): string {
  return `clt${uid}`;
}

async function exists(device: string): Promise<boolean> {
  try {
    await ip(['link', 'show', 'dev', device]);
    return true;
  } catch (error) {
    if (error instanceof HostToolError && !error.isMissing) return false;
    throw error;
  }
}

function quietIpv6(device: string): void {
  try {
    turnOn(`net.ipv6.conf.${device}.disable_ipv6`);
  } catch (cause) {
    const detail = `${CLOSED}: IPv6 cannot be turned off on ${device}, because /proc/sys is read-only here`;
    throw new AppError('engine_unavailable', detail, { hint: `${QUIET_FIX}, or ${USE_LOOPBACK}`, cause });
  }
}

function assertForwarding(): void {
  if (isOn(FORWARDING)) return;
  throw new AppError(
    'engine_unavailable',
    'IP forwarding is disabled on this host, so virtual machines cannot open outbound connections',
    {
      hint: `${wayToTurnOn(FORWARDING)}, or set CLOUDLET_VM_OUTBOUND=off`,
    },
  );
}

function asRefusal(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const isMissing = error instanceof HostToolError && error.isMissing;
  const mend = isMissing ? `${INSTALL_NFT} iproute2` : 'run Cloudlet as root with CAP_NET_ADMIN';
  const detail = `${CLOSED}: ${error instanceof Error ? error.message : String(error)}`;
  return new AppError('engine_unavailable', detail, { hint: `${mend}, or ${USE_LOOPBACK}`, cause: error });
}

/** This host's own address among its guests. */
function firstAddress(network: string): { readonly gateway: string; readonly prefix: number } {
  const [base = '', prefix = ''] = network.split('/');
  const size = 2 ** (32 - Number(prefix));
  const first = Math.floor(toNumber(base) / size) * size + 1;
  const parts = [24, 16, 8, 0].map((bits) => Math.floor(first / 2 ** bits) % 256);
  return { gateway: parts.join('.'), prefix: Number(prefix) };
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}
