/**
 * The private network of an account: its machines reach each other, its databases and the S3
 * endpoint by name, and no other account's. Each machine has a separate device and address for it.
 */
import type { Duplex } from 'node:stream';
import { hostnameOf, privateLinkOf } from './machines/runs.ts';
import type { VmStore } from './machines/vm-store.ts';

export interface NetworkMember {
  readonly vmId: string;
  readonly accountId: number;
  /** Identifies this run. */
  readonly run: string;
  readonly hostname: string;
  readonly mac: string;
  /** IPv4 text. */
  readonly address: string;
}

/** The switch port: connects machines of the same account, and each account to its own services. */
export interface PrivateSwitch {
  /**
   * Connects exactly these machines. The next call retries unreachable ones. Never rejects.
   */
  sync(members: readonly NetworkMember[]): Promise<void>;
  /** Ends a sync() in progress; no more follow. */
  stop(): void;
  /** Disconnects all machines. */
  close(): Promise<void>;
}

/** The port to an account's other resources in its network. */
export interface NetworkServices {
  /** The number of the account's database with that name; null: none. */
  find(accountId: number, name: string): Promise<number | null>;
  /**
   * A connection to a port of the account's database with that number, or `data`: the data origin
   * serves it. null: refused. Allows half-open. Throws `engine_unavailable`.
   */
  dial(request: {
    readonly accountId: number;
    readonly number: number;
    readonly port: number;
  }): Promise<Duplex | 'data' | null>;
  /**
   * The URI, with password, of the account's database with that name; null: none. Throws while it is
   * unknown.
   */
  uri(accountId: number, name: string): Promise<string | null>;
}

/** Connects the running machines. Call every second. */
export async function syncPrivateNetworks(
  store: Pick<VmStore, 'listConnected'>,
  networks: PrivateSwitch,
): Promise<void> {
  const rows = await store.listConnected();
  const members = rows.flatMap(({ vm_id: vmId, account_id: accountId, name, handle, ...vm }) => {
    const link = privateLinkOf(vm);
    if (link === undefined) return [];
    const [address = ''] = link.address.split('/');
    return { vmId, accountId, run: handle ?? '', hostname: hostnameOf(name, vmId), mac: link.mac, address };
  });
  await networks.sync(members);
}
