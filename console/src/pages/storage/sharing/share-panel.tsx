/** Links to a file or folder for people without an account: created with an expiry, and ended at any time. */

import { Button, Group, NumberInput, PasswordInput, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import qrcode from 'qrcode-generator';
import { useState } from 'react';
import type { NewShare, Share } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { CopyIcon } from '../../../parts/commands/copy.tsx';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Refused, Warning } from '../../../parts/forms/warning.tsx';
import { isLoopback } from '../../../parts/loopback.ts';
import { sayName } from '../../../parts/say.ts';
import { sharingText } from '../../../texts/sharing-text.ts';
import { text } from '../../../texts/text.ts';
import { sharesQuery } from '../queries.ts';
import classes from '../storage.module.css';
import { ShareList } from './share-list.tsx';

const HOUR = 3600;
const NEVER = 'never';
const words = sharingText;
const TERMS = [
  { value: String(HOUR), label: text.storage.hour },
  { value: String(24 * HOUR), label: text.storage.day },
  { value: String(7 * 24 * HOUR), label: text.storage.week },
  { value: String(30 * 24 * HOUR), label: text.storage.month },
  { value: NEVER, label: words.never },
];
const MOST_DOWNLOADS = 1_000_000;

interface Shared {
  readonly bucket: string;
  /** Ends with "/" or empty: a folder. */
  readonly name: string;
}

export function SharePanel({ bucket, name }: Shared) {
  const [term, setTerm] = useState(String(7 * 24 * HOUR));
  const [password, setPassword] = useState('');
  const [most, setMost] = useState<number | undefined>();
  const wanted: NewShare = {
    bucket,
    name,
    ...(term === NEVER ? {} : { expires_in: Number(term) }),
    ...(password === '' ? {} : { password }),
    ...(most === undefined ? {} : { max_downloads: most }),
  };
  const shares = useQuery(sharesQuery);
  const make = useMutation({
    mutationFn: () => cloud.createShare(wanted),
    meta: { shown: true, invalidates: [sharesQuery] },
    onSuccess: () => setPassword(''),
  });
  const own = (shares.data ?? []).filter((each) => each.bucket === bucket && each.name === name);
  // The new link is shown above, with its QR code.
  const others = own.filter(({ share_id }) => share_id !== make.data?.share_id);
  const isThere = make.data !== undefined && own.some(({ share_id }) => share_id === make.data.share_id);
  return (
    <Stack>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate();
        }}
      >
        <Group align="flex-end">
          <Select
            label={text.storage.lives}
            data={TERMS}
            value={term}
            allowDeselect={false}
            onChange={(value) => setTerm(value ?? term)}
            w={160}
          />
          <PasswordInput
            label={words.password}
            description={words.optional}
            autoComplete="new-password"
            value={password}
            onChange={({ currentTarget: { value } }) => setPassword(value)}
            w={180}
          />
          <NumberInput
            label={words.most}
            description={words.optional}
            min={1}
            max={MOST_DOWNLOADS}
            allowDecimal={false}
            onChange={(value) => setMost(typeof value === 'number' ? value : undefined)}
            w={160}
          />
          <Button type="submit" loading={make.isPending}>
            {text.storage.makeLink}
          </Button>
        </Group>
      </form>
      <Refused error={make.error} />
      {isThere && make.data !== undefined && <NewLink share={make.data} />}
      {others.length > 0 && <ShareList shares={others} showsName={false} />}
      <CallSample
        operation="createShare"
        args={[{ ...wanted, ...(password === '' ? {} : { password: '…' }) }]}
      />
    </Stack>
  );
}

function NewLink({ share }: { share: Share }) {
  return (
    <>
      <TextInput
        label={text.storage.link}
        readOnly
        value={share.url}
        onFocus={({ currentTarget }) => currentTarget.select()}
        rightSection={<CopyIcon value={share.url} label={text.storage.copyLink} />}
      />
      <Text size="sm" c="dimmed">
        {share.name === '' || share.name.endsWith('/') ? words.folderLead : words.fileLead}
      </Text>
      {isLoopback(share.url) && <Warning title={text.storage.linkOnlyHere} />}
      <QrCode value={share.url} />
      <ShareList shares={[share]} showsName={false} />
    </>
  );
}

/** The panel in a window, for a row of the list. */
export function ShareDialog({ onClose, ...shared }: Shared & { readonly onClose: () => void }) {
  const last = shared.name.split('/').findLast((part) => part !== '') ?? shared.bucket;
  return (
    <Dialog opened onClose={onClose} size="lg" title={words.title(sayName(last))}>
      <SharePanel {...shared} />
    </Dialog>
  );
}

/** Dark on white in both themes, as cameras require. */
function QrCode({ value }: { value: string }) {
  const code = qrcode(0, 'L');
  code.addData(value);
  code.make();
  const size = code.getModuleCount();
  const squares: string[] = [];
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      if (code.isDark(row, column)) squares.push(`M${column} ${row}h1v1h-1z`);
    }
  }
  return (
    <svg
      className={classes.qrCode}
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={text.storage.qrCode}
      shapeRendering="crispEdges"
    >
      <path d={squares.join('')} fill="#000" />
    </svg>
  );
}
