/**
 * The hypervisor port: the engine that runs guests, on this host or in a cluster. Rows of compute hold the
 * desired state, the engine holds the actual state, and the engine wins.
 *
 * Every call names the guest by its `vmId`, is idempotent after a crash, and is serialized per guest (except
 * `inspect`, `sample` and the console). Errors are AppErrors: `engine_unavailable` with the fix as hint,
 * `insufficient_capacity`, `out_of_space`, `internal_error`.
 */
import type { Preparing } from '../platform/host/preparing.ts';

/** Features of an engine. A missing one is reported to the caller, never emulated. */
export interface HypervisorCapabilities {
  /** Memory and disk figures from inside the guest. */
  readonly guestStatistics: boolean;
  readonly console: boolean;
  /** Guests keep running when this process ends. */
  readonly survivesRestart: boolean;
  /** Number of files that a start opens in this process. */
  readonly filesToStart: number;
}

/** A guest in a recovery point whose disk a new guest starts from. */
export interface GuestOrigin {
  readonly vmId: string;
  /** Files by the paths of GuestFiles. Throws `data_corrupted`, `target_unavailable`. */
  find(path: string): Promise<OriginFile | undefined>;
}

export interface OriginFile {
  /** Allocated space, without holes. */
  readonly spaceBytes: number;
  read(): AsyncIterable<Uint8Array>;
  /** Creates a file of mode 0600; the folder exists. */
  writeTo(path: string): Promise<void>;
}

/** Specification of a guest. All text is validated, and engines must still escape it. */
export interface GuestSpec {
  /** `vm-` + 26 characters. */
  readonly vmId: string;
  /** RFC 9562 text form; for the engine's own records. */
  readonly uuid: string;
  /** 1 to 63 of `a-z0-9-`, derived from the user's name for the machine. */
  readonly hostname: string;
  readonly vcpus: number;
  readonly memoryMb: number;
  readonly diskGb: number;
  /** Number of times the disk was replaced by a new one; missing: 0. */
  readonly rebuilds?: number;
  readonly image: GuestImage;
  /** OpenSSH public key lines. */
  readonly sshKeys: readonly string[];
  /** cloud-init user data, or a script that begins with `#!`; null: none. */
  readonly userData: string | null;
  /** URIs of databases by the names of variables, `A-Z0-9_`; they are secret. Missing: none. */
  readonly databaseUris?: Readonly<Record<string, string>>;
  readonly network: GuestNetwork;
  /** The guest has run before: its disk exists or was lost, and is never recreated. */
  readonly hasRun?: boolean;
}

export interface GuestImage {
  /** `tiny`, or `img-…`. */
  readonly imageId: string;
  /**
   * Boot method: `kernel` has a kernel and initramfs beside the disk; `disk` uses the disk's own boot loader.
   */
  readonly boot: 'kernel' | 'disk';
  readonly format: 'raw' | 'qcow2';
}

export interface GuestNetwork {
  /** `52:xx:xx:xx:xx:xx`, unique in this cloud. */
  readonly mac: string;
  /** Guest TCP ports that Guests.endpoint accepts. Always includes 22. */
  readonly ports: readonly number[];
  /** Whether the guest may open outbound connections; never to this host or to other guests. */
  readonly outbound: boolean;
  /** IPv4 text, assigned to the guest itself if the engine's network supports it; null: none. */
  readonly address: string | null;
  /** Missing: the guest is on no private network. An engine that cannot connect it omits it. */
  readonly privateLink?: PrivateLink | undefined;
}

/** A guest's second network device, connected only to its account's private network. */
export interface PrivateLink {
  /** `56:xx:xx:xx:xx:xx`. */
  readonly mac: string;
  /** IPv4 with its prefix. */
  readonly address: string;
  /** IPv4 text of the name server for `.internal`. */
  readonly resolver: string;
}

/** A path that leads to a socket until close(). */
export interface HeldSocket {
  readonly path: string;
  close(): void;
}

/** The engine's reference to a run; opaque to compute, which stores it in the row and passes it back. */
export type GuestHandle = string;

export interface StartedGuest {
  readonly handle: GuestHandle;
  /** `kvm`, `tcg`, or the name a cluster uses. */
  readonly accel: string;
  /** Why no faster accelerator is used; empty if the fastest is. */
  readonly accelReason: string;
}

/** How the guest was stopped, from graceful to forced. */
export type StopMethod = 'guest' | 'quit' | 'terminate' | 'kill' | 'was_stopped';

export interface StopOptions {
  /** Time for a graceful shutdown, ms; 0: none. */
  readonly graceMs: number;
  /** When aborted, the rest of the grace period is skipped. */
  readonly signal?: AbortSignal;
}

export interface GuestFact {
  readonly vmId: string;
  readonly running: boolean;
  /** A running guest's handle. */
  readonly handle: GuestHandle | null;
  /** Start time of the current run, ms since 1970; null when it does not run or the time is unknown. */
  readonly runningSince: number | null;
  /** How the last run ended, by any cause; null: the guest runs, or it is unknown. */
  readonly end: LastEnd | null;
}

export type LastEnd =
  | Omit<GuestEnd, 'vmId'>
  /** The guest went down with its host; `at` null: the time is unknown. */
  | {
      readonly handle: GuestHandle;
      readonly cause: 'host_restarted';
      readonly message: string;
      readonly at: number | null;
    };

/** Why a guest ended without a stop request. */
export interface GuestEnd {
  readonly vmId: string;
  /** Handle of the ended run, to distinguish it from a newer one. */
  readonly handle: GuestHandle;
  /** `guest_shutdown`: it powered itself off; `crashed`: its process exited or was killed. */
  readonly cause: 'guest_shutdown' | 'guest_panic' | 'crashed';
  /** For people: signal, exit status, last line of the engine's log. Contains no path. */
  readonly message: string;
  /** ms since 1970. */
  readonly at: number;
}

/**
 * Metrics of one moment. An unavailable figure is null, never 0 and never estimated. Counters are cumulative.
 */
export interface GuestSample {
  /** ms since 1970. */
  readonly at: number;
  /** CPU time of all vCPUs since this run began, ms. */
  readonly cpuMs: number | null;
  /** Memory in use as reported by the guest, bytes. */
  readonly memoryUsedBytes: number | null;
  /**
   * Metrics of one moment. An unavailable figure is null, never 0 and never estimated. Counters are
   * cumulative.
   */
  readonly memoryTotalBytes: number | null;
  /** Host memory held by the guest, bytes. */
  readonly residentBytes: number | null;
  readonly diskReadBytes: number | null;
  readonly diskWriteBytes: number | null;
  readonly networkRxBytes: number | null;
  readonly networkTxBytes: number | null;
}

/** A bidirectional serial console. */
export interface GuestConsole {
  /** Resolves when the guest's side accepted the bytes. */
  write(bytes: Uint8Array): Promise<void>;
  onData(listener: (bytes: Uint8Array) => void): void;
  /** Called once, when the guest stopped or the engine lost the console. */
  onClose(listener: () => void): void;
  /** Closes the console; the guest keeps running. */
  close(): void;
}

export interface Readiness {
  readonly isUsable: boolean;
  /** Why the engine is unusable and how to fix it; empty when it is usable. */
  readonly problem: string;
  readonly fix: string;
  readonly version: string;
  /** Accelerator that new runs would use, and why no faster one. */
  readonly accel: string;
  readonly accelReason: string;
  /** The host is still building the built-in image: machines wait for it to start. */
  readonly preparing?: Preparing | undefined;
}

export interface Hypervisor {
  /** `qemu`, `ganeti`, …, for status and logs. */
  readonly name: string;
  readonly capabilities: HypervisorCapabilities;

  /** Cheap; may be called at any time. Never rejects. */
  readiness(): Promise<Readiness>;

  /** Memory available to all running guests together, MiB; a larger guest never starts. Cheap. */
  memoryForGuestsMb(): number;

  /**
   * Creates the guest's disk and seed. An existing disk is kept; one that is smaller than `diskGb` is grown,
   * with all that is on it, and never shrunk. Leaves nothing behind on failure. Does nothing when the engine
   * is not installed yet. start() does the same. A disk of fewer `rebuilds` than the spec's is replaced by a
   * new one of its image: after a crash, the disk is either the old or the new one. `origin`: the disk is a
   * copy of that guest's; rejects with `engine_unavailable` when the engine is not installed.
   */
  prepare(spec: GuestSpec, origin?: GuestOrigin): Promise<void>;

  /**
   * Resolves when the guest's CPU runs. A running guest is left alone and described. The same guest
   * never runs twice. A failed start leaves nothing running. Throws `disk_missing` if it ran before
   * and has no disk here.
   */
  start(spec: GuestSpec): Promise<StartedGuest>;

  /**
   * Resolves when the guest is gone, within `graceMs` plus 15 s: a shutdown is requested every 3 s,
   * then the guest is killed. Reports no GuestEnd.
   */
  stop(vmId: string, options: StopOptions): Promise<StopMethod>;

  inspect(vmId: string): Promise<GuestFact>;

  /** All guests of this cloud in the engine, running or with a disk, including those without a row. */
  list(): Promise<readonly GuestFact[]>;

  /** Deletes the disk and files of a stopped guest; no error if missing. */
  discard(vmId: string): Promise<void>;

  /** Copies of guests' disks. */
  readonly snapshots: GuestSnapshots;

  /** null: the guest does not run. */
  sample(vmId: string): Promise<GuestSample | null>;

  /** Why a running guest's CPU is paused; null: not paused, as far as known. Cheap. */
  waiting(vmId: string): 'disk_full' | null;

  /** The console of a running guest, or null. Output since boot is in consoleLog. One caller at a time. */
  openConsole(vmId: string): Promise<GuestConsole | null>;

  /** The newest `maxBytes` of serial console output, across the latest runs. */
  consoleLog(vmId: string, maxBytes: number): Promise<Uint8Array>;

  /** Host address of a guest's TCP port in the current run; null: unreachable. */
  endpoint(spec: Pick<GuestSpec, 'vmId' | 'network'>, port: number): GuestEndpoint | null;

  /**
   * The same for any TCP port of a running guest, even if its network does not list it. Close it
   * once a connection is made and used; the connection remains. null: the guest does not run.
   * Throws `engine_unavailable`.
   */
  reach(spec: Pick<GuestSpec, 'vmId' | 'network'>, port: number): Promise<ReachedPort | null>;

  /**
   * The socket behind a running guest's private device: in each direction, frames after their
   * length as 4 bytes, big endian. One connection at a time. null: the guest does not run, or was
   * started without the device.
   */
  privateSocket(vmId: string): HeldSocket | null;

  /** Reports guests that end by themselves, including adopted ones. One listener. */
  onEnd(listener: (end: GuestEnd) => void): void;

  /**
   * Begins an image and returns the stage that its bytes are written to. Bytes staged under that id
   * before are removed, or kept with `resume`, as far as nobody else could write to them. `imageId` is
   * `img-` + 26 characters.
   */
  stageImage(imageId: string, options?: { readonly resume: boolean }): Promise<ImageStage>;

  /**
   * Makes an image of the staged bytes, durable and usable under `imageId` once this resolves. The
   * bytes are untrusted: their format is detected from the content. Throws `invalid_request` if
   * they need other files or are encrypted, damaged or too large. One caller at a time. Leaves
   * nothing behind on failure; rejects with the signal's reason when aborted.
   */
  importImage(imageId: string, options: ImportOptions): Promise<ImportedImage>;

  /**
   * Removes the staged and the imported image; no error if missing. Guests created from it are unaffected.
   */
  discardImage(imageId: string): Promise<void>;

  /** All images of this cloud stored in the engine, including unfinished ones and those without a row. */
  listImages(): Promise<readonly string[]>;

  /** Monitors guests that already run (after a restart of Cloudlet), so that their end is reported. */
  adopt(facts: readonly GuestFact[]): Promise<void>;

  /** Releases everything; guests keep running. */
  close(): Promise<void>;
}

/** Copies of the disk of a guest that does not run; discard() of the guest removes them. */
export interface GuestSnapshots {
  /**
   * Copies the disk; durable and listed once it resolves, and neither after a crash. `snapshotId` is `snp-`
   * and 26 characters. Throws `disk_missing`, `out_of_space`, `engine_unavailable`.
   */
  take(vmId: string, snapshotId: string): Promise<{ readonly sizeBytes: number }>;
  /**
   * Replaces the disk by the copy, which is kept. After a crash, the disk is either the old or the new one.
   * Throws like take().
   */
  restore(vmId: string, snapshotId: string): Promise<void>;
  /** No error if missing. */
  discard(vmId: string, snapshotId: string): Promise<void>;
  list(vmId: string): Promise<readonly string[]>;
  /** Bytes that the disk and its copies take on the disk of this host; 0: there are none. */
  takenBytes(vmId: string): number;
}

export interface GuestEndpoint {
  readonly host: string;
  readonly port: number;
}

export interface ReachedPort {
  readonly endpoint: GuestEndpoint;
  /** Closes the endpoint. Never rejects. */
  giveUp(): Promise<void>;
}

export interface ImageStage {
  /** Bytes kept from before, from the first on. Read to the end before the first write. */
  kept(): AsyncIterable<Uint8Array>;
  /** One call at a time. `bytes` may be reused after it resolves. Throws `out_of_space`. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the stage; must be called exactly once. */
  close(): Promise<void>;
}

export interface ImportOptions {
  /** Largest virtual disk size, bytes. */
  readonly maxVirtualBytes: number;
  readonly signal: AbortSignal;
}

export interface ImportedImage {
  /** Format detected from the bytes. */
  readonly format: 'raw' | 'qcow2';
  /** Virtual disk size, bytes. */
  readonly virtualBytes: number;
  /** Stored size, bytes. */
  readonly sizeBytes: number;
}
