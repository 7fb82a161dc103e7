/** Dependencies of QemuHypervisor. */
import type { Clock } from '../../platform/clock.ts';
import type { NoOtherUsers } from '../../platform/host/other-users.ts';
import type { GuestBridge, OutboundGuard } from './guests/guest-networks.ts';
import type { HostDisk } from './images/disk-full-waits.ts';
import type { TinyImage } from './images/tiny-image.ts';

export interface QemuDeps {
  /** Folder with everything of every guest. */
  readonly vmsDirectory: string;
  /** Images as `<imageId>.<format>`. */
  readonly imagesDirectory: string;
  /** Paths of the built-in image's boot files. */
  readonly tiny: TinyImage;
  readonly clock: Clock;
  /** The first user id of guests: each has its own of the next million. */
  readonly uidBase: number;
  /** Why guests run under our own user instead; null: they do not. */
  readonly noUsers: NoOtherUsers | null;
  /** `tcg`: KVM is not tried; `kvm`: it is used without the test boot. */
  readonly accel: 'auto' | 'tcg' | 'kvm';
  /** Memory for guests, as a multiple of the host's available memory. */
  readonly memoryOvercommit: number;
  /** Called with a warning about a guest (`''`: about all) for the operator; no path, no secret. */
  readonly warn?: (vmId: string, text: string) => void;
  /** Host rules for guests' processes; null: none, and every guest is isolated. */
  readonly outbound: OutboundGuard | null;
  /** Where guests have their own addresses; null: QEMU's own network. */
  readonly bridge: GuestBridge | null;
  /** This host's disk, with the directories above; without it: it is never full. */
  readonly disk?: HostDisk;
  /** Throws when that many more bytes cannot be stored. */
  readonly assertSpace?: (bytes: number) => void;
  /** Throws if guests' disks may not grow by that many bytes. */
  readonly assertGrowth?: (bytes: number) => void;
  /** Time limit for a KVM guest's first sign of life, in CPU time and wall time. */
  readonly firstSign?: { readonly withinCpuMs: number; readonly withinMs: number };
  /** Control group of a restore drill, whose guest ends with us and has no network; default: no drill. */
  readonly drillGroup?: string;
  /** Another node of the cluster has the guests: none is started, stopped or removed here. */
  readonly isElsewhere?: boolean;
  /** Folders searched for QEMU instead of the usual ones. */
  readonly programDirectories?: readonly string[];
}
