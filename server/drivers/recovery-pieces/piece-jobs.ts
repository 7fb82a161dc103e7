/** Messages between the event loop and the threads that process pieces. */
import type { Problem } from '../../recovery/repository/piece-box.ts';
import type { FilePart, PlacedFile } from '../../recovery/repository/target.ts';

export type PieceJob =
  | { readonly kind: 'keep'; readonly bytes: Uint8Array<ArrayBuffer>; readonly isPacked: boolean }
  | { readonly kind: 'keepPart'; readonly part: FilePart; readonly isPacked: boolean }
  | { readonly kind: 'read'; readonly piece: string }
  | { readonly kind: 'writeFile'; readonly file: PlacedFile; readonly pieces: readonly string[] }
  | { readonly kind: 'check'; readonly piece: string; readonly isQuick: boolean }
  | { readonly kind: 'renewLock'; readonly piece: string };

export interface PieceFailure {
  readonly message: string;
  /** The code of the file system, or of the driver's fault. */
  readonly code: string | undefined;
  /** The piece is damaged. */
  readonly problem: Problem | undefined;
}

export type PieceAnswer = { readonly result: unknown } | { readonly failure: PieceFailure };
