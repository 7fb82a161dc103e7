/**
 * What compute needs of an engine that runs machines, on this host or in a cluster. The rows of compute are
 * the wish, the engine is the truth: whatever the engine says of a guest wins over what the row remembers.
 *
 * Every call names the guest by its `vmId` alone, may be repeated after a crash, and comes one at a time for
 * the same guest (`inspect`, `sample` and the console at any time). Errors are AppErrors:
 * `engine_unavailable` with the fix as hint, `insufficient_capacity`, `out_of_space`, `internal_error`.
 */

/** What an engine can do; a missing capability is said to the caller, never imitated. */
export interface HypervisorCapabilities {
  /** Memory and disk figures from inside the guest. */
  readonly guestStatistics: boolean;
  readonly console: boolean;
  /** Guests outlive this process. */
  readonly survivesRestart: boolean;
  /** Files that a start opens in this process. */
  readonly filesToStart: number;
}

/** What a guest is made of. Everything here is validated text: an engine may still never let it be syntax. */
export interface GuestSpec {
  /** `vm-` + 26 characters. */
  readonly vmId: string;
  /** RFC 9562 text form; for the engine's own records. */
  readonly uuid: string;
  /** 1 to 63 of `a-z0-9-`, made from the name the user gave. */
  readonly hostname: string;
  readonly vcpus: number;
  readonly memoryMb: number;
  readonly diskGb: number;
  readonly image: GuestImage;
  /** OpenSSH public key lines. */
  readonly sshKeys: readonly string[];
  /** A cloud-init user-data text, or a script that begins with `#!`; null: none. */
  readonly userData: string | null;
  readonly network: GuestNetwork;
}

export interface GuestImage {
  /** `tiny`, or `img-…`. */
  readonly imageId: string;
  /** How it starts: `kernel`: a kernel and initramfs beside the disk; `disk`: from its own boot loader. */
  readonly boot: 'kernel' | 'disk';
  readonly format: 'raw' | 'qcow2';
}

export interface GuestNetwork {
  /** `52:xx:xx:xx:xx:xx`, unique in this cloud. */
  readonly mac: string;
  /** Guest TCP ports that Guests.endpoint can be asked for. Always has 22. */
  readonly ports: readonly number[];
  /** The guest may open connections to the outside; never to this host or to other guests. */
  readonly outbound: boolean;
  /** IPv4 text. Given to the guest itself by an engine whose network carries it; null: it has none. */
  readonly address: string | null;
}

/** Where a guest runs; opaque to compute, which keeps it in the row and hands it back. */
export type GuestHandle = string;

export interface StartedGuest {
  readonly handle: GuestHandle;
  /** `kvm`, `tcg`, or what a cluster says. */
  readonly accel: string;
  /** Why it is not the faster one; empty when it is. */
  readonly accelReason: string;
}

/** What stopped it, from gentle to hard. */
export type StopMethod = 'guest' | 'quit' | 'terminate' | 'kill' | 'was_stopped';

export interface StopOptions {
  /** How long the guest is asked nicely (0: not at all), ms. */
  readonly graceMs: number;
  /** Aborted: nobody waits for the guest any longer, the rest of the grace is void. */
  readonly signal?: AbortSignal;
}

export interface GuestFact {
  readonly vmId: string;
  readonly running: boolean;
  /** A running guest's handle. */
  readonly handle: GuestHandle | null;
  /** When its processor began to run, ms since 1970; null when it does not run or nobody knows. */
  readonly runningSince: number | null;
  /** How the last run ended, whoever ended it; null: the guest runs, or nobody knows. */
  readonly end: LastEnd | null;
}

export type LastEnd =
  | Omit<GuestEnd, 'vmId'>
  /** It went down with its host, whatever came first; `at` null: nobody knows when. */
  | {
      readonly handle: GuestHandle;
      readonly cause: 'host_restarted';
      readonly message: string;
      readonly at: number | null;
    };

/** Why a guest that was not told to stop is gone. */
export interface GuestEnd {
  readonly vmId: string;
  /** The ended run's handle: an old run's end says nothing of a new one. */
  readonly handle: GuestHandle;
  /** `guest_shutdown`: it powered itself off; `crashed`: its process ended by itself or was killed. */
  readonly cause: 'guest_shutdown' | 'guest_panic' | 'crashed';
  /** For humans: signal, exit status, last line of the engine's log. No path. */
  readonly message: string;
  /** ms since 1970. */
  readonly at: number;
}

/** Readings of one moment. A figure that cannot be had is null, never 0 and never guessed. Counters grow. */
export interface GuestSample {
  /** ms since 1970. */
  readonly at: number;
  /** Processor time of all vCPUs since this run began, ms. */
  readonly cpuMs: number | null;
  /** Used inside the guest, as the guest counts it, bytes. */
  readonly memoryUsedBytes: number | null;
  /** What the guest has, bytes. */
  readonly memoryTotalBytes: number | null;
  /** What the guest takes of the host's memory, bytes. */
  readonly residentBytes: number | null;
  readonly diskReadBytes: number | null;
  readonly diskWriteBytes: number | null;
  readonly networkRxBytes: number | null;
  readonly networkTxBytes: number | null;
}

/** A serial console: bytes both ways. */
export interface GuestConsole {
  /** Resolves when the guest's side took it. */
  write(bytes: Uint8Array): Promise<void>;
  onData(listener: (bytes: Uint8Array) => void): void;
  /** The guest stopped, or the engine lost it. Called once. */
  onClose(listener: () => void): void;
  /** Lets go; the guest runs on. */
  close(): void;
}

export interface Readiness {
  readonly isUsable: boolean;
  /** Why not, and what to do; empty when usable. */
  readonly problem: string;
  readonly fix: string;
  readonly version: string;
  /** What guests would be started with now, and why nothing faster. */
  readonly accel: string;
  readonly accelReason: string;
}

export interface Hypervisor {
  /** `qemu`, `ganeti`, … for status and logs. */
  readonly name: string;
  readonly capabilities: HypervisorCapabilities;

  /** Cheap; may be asked at any time. Never rejects. */
  readiness(): Promise<Readiness>;

  /** How much memory guests that run may have together, MiB: one that is larger never starts. Cheap. */
  memoryForGuestsMb(): number;

  /**
   * Makes the guest's disk and seed. A guest prepared before keeps its disk. Leaves nothing behind when it
   * fails. Does nothing, and start() does it, when the engine is not installed yet.
   */
  prepare(spec: GuestSpec): Promise<void>;

  /**
   * Resolves when the guest's processor runs. A guest that runs already is left alone and described. Never
   * two of the same guest. A failed start leaves nothing running.
   */
  start(spec: GuestSpec): Promise<StartedGuest>;

  /**
   * Resolves when the guest is gone, always within `graceMs` plus 15 s: first it is asked (again every 3 s),
   * then ended. No GuestEnd is reported for it.
   */
  stop(vmId: string, options: StopOptions): Promise<StopMethod>;

  inspect(vmId: string): Promise<GuestFact>;

  /** Every guest of this cloud that the engine has, running or with a disk: also those no row knows. */
  list(): Promise<readonly GuestFact[]>;

  /** Removes the disk and all else of a stopped guest; missing is no error. */
  discard(vmId: string): Promise<void>;

  /** null: it does not run. */
  sample(vmId: string): Promise<GuestSample | null>;

  /** Why the processor of a guest that runs stands still; null: it does not, as far as is known. Cheap. */
  waiting(vmId: string): 'disk_full' | null;

  /** The console of a running guest, or null. Bytes since boot are in consoleLog. One caller at a time. */
  openConsole(vmId: string): Promise<GuestConsole | null>;

  /** The newest `maxBytes` that the guest wrote to its serial console, across its last runs. */
  consoleLog(vmId: string, maxBytes: number): Promise<Uint8Array>;

  /** Where this host reaches a TCP port of the guest in its present run; null: it cannot. */
  endpoint(spec: Pick<GuestSpec, 'vmId' | 'network'>, port: number): GuestEndpoint | null;

  /** Guests that end by themselves, also those adopted. One listener. */
  onEnd(listener: (end: GuestEnd) => void): void;

  /**
   * Begins an image: the place where its bytes, as they come, are put down. What was staged under that id
   * before is gone. `imageId` is `img-` + 26 characters.
   */
  stageImage(imageId: string): Promise<ImageStage>;

  /**
   * Makes an image of what was staged; guests can start from it under `imageId` when this resolves, and it
   * is durable then. The bytes are of strangers: they are recognized by themselves, and refused with
   * `invalid_request` when they need other files, are encrypted, damaged or larger than allowed. One caller
   * at a time. Leaves nothing behind when it fails; rejects with the signal's reason when that is aborted.
   */
  importImage(imageId: string, options: ImportOptions): Promise<ImportedImage>;

  /** Removes what was staged and what was imported; missing is no error. Guests made of it live on. */
  discardImage(imageId: string): Promise<void>;

  /** Every image of this cloud that takes room in the engine, also unfinished ones and those no row knows. */
  listImages(): Promise<readonly string[]>;

  /** Begins to watch guests that run (after a start of Cloudlet), so that their end is reported. */
  adopt(facts: readonly GuestFact[]): Promise<void>;

  /** Lets go of everything; guests run on. */
  close(): Promise<void>;
}

export interface GuestEndpoint {
  readonly host: string;
  readonly port: number;
}

export interface ImageStage {
  /** One at a time. `bytes` may be used again when it resolves. Throws `out_of_space`. */
  write(bytes: Uint8Array): Promise<void>;
  /** No more comes; to be called once, always. */
  close(): Promise<void>;
}

export interface ImportOptions {
  /** Largest disk, as a guest would see it, bytes. */
  readonly maxVirtualBytes: number;
  readonly signal: AbortSignal;
}

export interface ImportedImage {
  /** What the bytes turned out to be. */
  readonly format: 'raw' | 'qcow2';
  /** The size that a guest sees, bytes. */
  readonly virtualBytes: number;
  /** What is stored, bytes. */
  readonly sizeBytes: number;
}
