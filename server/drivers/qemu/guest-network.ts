/** The network of guests, with its rules that protect this host. */
import type { Config } from '../../config/config.ts';
import type { NoOtherUsers } from '../../platform/host/other-users.ts';
import type { CloudClaim } from '../host-network/cloud-claim.ts';
import { GuestBridge } from '../host-network/guest-bridge.ts';
import { type GuardsOf, removeLeftGuards } from '../host-network/left-guards.ts';
import { OutboundGuard } from '../host-network/outbound-guard.ts';
import { AddressGuard } from '../loopback-ingress/address-guard.ts';
import { UIDS } from './guests/guest-folders.ts';

export type GuestNetworkSettings = Pick<
  Config,
  'vmUidBase' | 'vmPool' | 'vmNetwork' | 'vmOutbound' | 'vmOutboundPrivate'
>;

export interface GuestNetwork {
  readonly guard: OutboundGuard;
  readonly addressGuard: AddressGuard;
  /** null: each guest has a process that connects it. */
  readonly bridge: GuestBridge | null;
  /** The rules that must be in place. */
  readonly networks: readonly (OutboundGuard | AddressGuard | GuestBridge)[];
  /** Removes leftovers of ended clouds on this host. Never rejects. */
  removeLeft(warn: (text: string) => void): Promise<void>;
}

/** Changes nothing on the host. */
export function guestNetwork(
  { vmUidBase: uidBase, vmPool: network, ...config }: GuestNetworkSettings,
  { claim, noUsers }: { readonly claim: CloudClaim; readonly noUsers: NoOtherUsers | null },
): GuestNetwork {
  const users = { uidBase, uidCount: UIDS.count, noUsers };
  const outbound = config.vmOutbound === 'on';
  const allowPrivate = config.vmOutboundPrivate === 'on';
  const isBridge = config.vmNetwork === 'bridge';
  const guard = new OutboundGuard({ ...users, letsOut: outbound && !isBridge, allowPrivate, claim });
  const addressGuard = new AddressGuard({ network });
  const bridge = isBridge ? new GuestBridge({ uidBase, network, outbound, allowPrivate, claim }) : null;
  const left: GuardsOf = { uidBase, uidCount: UIDS.count, hasBridge: isBridge };
  return {
    guard,
    addressGuard,
    bridge,
    networks: bridge === null ? [guard, addressGuard] : [bridge, guard],
    removeLeft: (warn) => removeLeftGuards({ ...left, warn }),
  };
}

/** Removes rules of this host's ended clouds: call after ours has ended. Never rejects. */
export function removeLeftRules(): Promise<void> {
  return removeLeftGuards({ uidBase: 0, uidCount: UIDS.count, hasBridge: false, warn: () => {} });
}
