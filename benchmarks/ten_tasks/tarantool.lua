-- Updates and reads rows of a Tarantool: tarantool bench.lua ADDRESS SECONDS RECORDS FIBERS; SECONDS 0 loads the rows.
local net, fiber, clock, json = require('net.box'), require('fiber'), require('clock'), require('json')
local address, seconds, records, fibers = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])

local connection = net.connect(address)
local rows = connection.space.rows
if seconds == 0 then
    for first = 1, records, 500 do
        connection:eval([[
            local first, last = ...
            box.begin()
            for key = first, last do box.space.rows:replace({key, string.rep('x', 500)}) end
            box.commit()]], {first, math.min(first + 499, records)})
    end
    os.exit(0)
end

local function empty() return {read = {count = 0, failed = 0, bins = {}}, update = {count = 0, failed = 0, bins = {}}} end
local own, all, start = empty(), empty(), clock.monotonic()
local function show(second)
    for op, seen in pairs(own) do
        all[op].count, all[op].failed = all[op].count + seen.count, all[op].failed + seen.failed
        print(json.encode({second = second, op = op, operations = seen.count, errors = seen.failed, histogram = seen.bins}))
    end
    own = empty()
end

local working = fibers
for number = 1, fibers do
    fiber.create(function()
        while clock.monotonic() < start + seconds do
            local key, op = math.random(records), math.random() < 0.5 and 'read' or 'update'
            local before = clock.monotonic()
            local ok, why = pcall(function() return op == 'read' and rows:get(key) or rows:replace({key, string.rep('y', 500)}) end)
            if ok then
                local bin = tostring(math.ceil(1.1 ^ math.ceil(math.log((clock.monotonic() - before) * 1e6) / math.log(1.1))))
                own[op].count, own[op].bins[bin] = own[op].count + 1, (own[op].bins[bin] or 0) + 1
            else
                if own[op].failed == 0 then io.stderr:write(tostring(why), '\n') end
                own[op].failed = own[op].failed + 1
            end
        end
        working = working - 1
    end)
end
for second = 1, seconds do
    fiber.sleep(start + second - clock.monotonic())
    if second == seconds then while working > 0 do fiber.sleep(0.001) end end
    show(math.floor((clock.monotonic() - start) * 1000) / 1000)
end
for op, seen in pairs(all) do
    print(json.encode({second = 'total', op = op, operations = seen.count, errors = seen.failed}))
end
os.exit(0)
