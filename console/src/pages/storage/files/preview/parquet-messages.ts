/** Messages between the page and the worker that reads a Parquet file. */
import type { ParquetReason, ParquetTable } from './parquet-reading.ts';

export type ToWorker =
  | { readonly kind: 'open'; readonly size: number }
  | { readonly kind: 'bytes'; readonly id: number; readonly bytes: ArrayBuffer };

export type FromWorker =
  | { readonly kind: 'read'; readonly id: number; readonly start: number; readonly end: number }
  | { readonly kind: 'table'; readonly table: ParquetTable }
  | { readonly kind: 'refused'; readonly reason: ParquetReason };
