-- wrk's side of the bench. Counts answers other than 200 and prints one line of JSON at the end. With arguments it
-- sends multipart uploads of one file each, under names that no other request has, the JSON it is given, or the
-- prepared requests of a file in turn.
local body_head, body_tail, counter

local function random_bytes(size)
  local bytes = {}
  math.randomseed(size)
  for i = 1, math.min(size, 65536) do bytes[i] = string.char(math.random(0, 255)) end
  return string.rep(table.concat(bytes), math.ceil(size / 65536)):sub(1, size)
end

-- Each line: method, target and headers, between tabs.
local function send_prepared(path, size)
  local body, requests = size > 0 and random_bytes(size) or nil, {}
  for line in io.lines(path) do
    local fields = {}
    for field in line:gmatch("[^\t]+") do fields[#fields + 1] = field end
    local headers = {}
    for i = 3, #fields do
      local name, value = fields[i]:match("^([^:]+): (.*)$")
      headers[name] = value
    end
    requests[#requests + 1] = wrk.format(fields[1], fields[2], headers, body)
  end
  counter = 0
  request = function()
    counter = counter + 1
    return requests[(counter - 1) % #requests + 1]
  end
end

function init(args)
  if #args == 0 then return end
  if args[1] == "post" then
    wrk.method, wrk.body = "POST", args[3]
    wrk.headers["Content-Type"] = "application/json"
    wrk.headers["Authorization"] = "Bearer " .. args[2]
    return
  end
  if args[1] == "prepared" then return send_prepared(args[2], tonumber(args[3])) end
  local prefix, size, thread = args[1], tonumber(args[2]), tostring({}):sub(8)
  local boundary = "bench-boundary-7f3a91c2"
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "multipart/form-data; boundary=" .. boundary
  body_head = "--" .. boundary .. '\r\nContent-Disposition: form-data; name="file"; filename="' .. prefix .. thread
  body_tail = '"\r\nContent-Type: application/octet-stream\r\n\r\n' .. random_bytes(size) .. "\r\n--" .. boundary .. "--\r\n"
  counter = 0
  request = function()
    counter = counter + 1
    return wrk.format(nil, nil, nil, body_head .. string.format("%010d", counter) .. body_tail)
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"bytes":%.0f,"microseconds":%.0f,"refused":%d,"broken":%d,"p50":%.0f,"p99":%.0f}\n',
    summary.requests, summary.bytes, summary.duration, errors.status,
    errors.connect + errors.read + errors.write, latency:percentile(50), latency:percentile(99)))
end
