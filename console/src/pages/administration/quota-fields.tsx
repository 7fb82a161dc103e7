/** Limits of a plan, or of one account; an empty field sets none. */
import { NumberInput } from '@mantine/core';
import type { Quotas } from '../../../../sdk/index.ts';
import { text } from '../../texts/text.ts';

export const BOUNDS = Object.keys(text.billing.quotas) as (keyof Quotas)[];

interface QuotaFieldsProps {
  readonly quotas: Quotas;
  /** The limit that applies to an empty field. */
  readonly placeholder: string;
  readonly onChange: (quotas: Quotas) => void;
}

export function QuotaFields({ quotas, placeholder, onChange }: QuotaFieldsProps) {
  const change = (bound: keyof Quotas, value: number | string) => {
    const { [bound]: _, ...others } = quotas;
    onChange(value === '' ? others : { ...others, [bound]: Number(value) });
  };
  return BOUNDS.map((bound) => (
    <NumberInput
      key={bound}
      label={text.billing.quotas[bound]}
      placeholder={quotas[bound] === null ? text.administration.unlimited : placeholder}
      min={0}
      allowDecimal={false}
      thousandSeparator=","
      value={quotas[bound] ?? ''}
      onChange={(value) => change(bound, value)}
    />
  ));
}
