-- wrk's side of the bench. Counts answers other than 200 and prints one line of JSON at the end. With arguments it
-- sends multipart uploads of one file each, under names that no other request has, or the JSON it is given.
local body_head, body_tail, counter

function init(args)
  if #args == 0 then return end
  if args[1] == "post" then
    wrk.method, wrk.body = "POST", args[3]
    wrk.headers["Content-Type"] = "application/json"
    wrk.headers["Authorization"] = "Bearer " .. args[2]
    return
  end
  local prefix, size, thread = args[1], tonumber(args[2]), tostring({}):sub(8)
  local boundary = "bench-boundary-7f3a91c2"
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "multipart/form-data; boundary=" .. boundary
  body_head = "--" .. boundary .. '\r\nContent-Disposition: form-data; name="file"; filename="' .. prefix .. thread
  local bytes = {}
  math.randomseed(size)
  for i = 1, size do bytes[i] = string.char(math.random(0, 255)) end
  body_tail = '"\r\nContent-Type: application/octet-stream\r\n\r\n' .. table.concat(bytes) .. "\r\n--" .. boundary .. "--\r\n"
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
